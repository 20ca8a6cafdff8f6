"""Patterns that are compiled when they are first used: most modules have some, and most commands use few of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any, AnyStr, cast

__all__ = ["later", "postponed"]

_importing = Lock()
_compile = re.compile  # the real one, also while `postponed` stands in for it


class _Later:
    """Stands for a compiled pattern; what it is asked for once, it has."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(_compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


def later(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, whose result it has all methods and attributes of, but compiled when it is first used.

    Args:
        source, flags: as `re.compile` takes them. A mistake in them is raised at the first use, so a test must make it.
    """
    return cast("re.Pattern[AnyStr]", _Later(source, flags))


@contextmanager
def postponed(package: str) -> Iterator[None]:
    """While entered, what a package compiles by `re.compile` is compiled when it is first used, as by `later`.

    For importing a library that compiles patterns which hardly anybody needs: PyYAML's for its parser in Python, where
    libyaml reads; Jinja's for reading templates, which are compiled already. They take longer than all else in these
    imports. Other threads are not concerned, nor are other packages that this one imports: they may do with their
    patterns what only real ones allow. Nothing but importing should be done in it.

    Args:
        package: the name at the top of the library's modules.
    """
    with _importing:
        thread = get_ident()

        def postpone(pattern: Any, flags: int | re.RegexFlag = 0) -> Any:
            module = str(sys._getframe(1).f_globals.get("__name__"))
            theirs = module.partition(".")[0] == package and get_ident() == thread
            if not theirs or not isinstance(pattern, str | bytes):
                return _compile(pattern, flags)
            return _Later(pattern, int(flags))

        re.compile = postpone
        try:
            yield
        finally:
            re.compile = _compile
