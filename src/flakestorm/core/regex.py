"""Patterns that are compiled when they are first used: most modules have some, and most commands use few of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any, AnyStr, cast

__all__ = ["later", "postponed"]

_importing = Lock()


class _Later:
    """Stands for a compiled pattern; what it is asked for once, it has."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


def later(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, whose result it has all methods and attributes of, but compiled when it is first used.

    Args:
        source, flags: as `re.compile` takes them. A mistake in them is raised at the first use, so a test must make it.
    """
    return cast("re.Pattern[AnyStr]", _Later(source, flags))


@contextmanager
def postponed() -> Iterator[None]:
    """While entered, what this thread compiles by `re.compile` is compiled when it is first used, as by `later`.

    For importing a library that compiles patterns which hardly anybody needs: PyYAML's for its parser in Python, where
    libyaml reads; Jinja's for reading templates, which are compiled already. They take longer than all else in these
    imports. Other threads are not concerned, and nothing but importing should be done in it.
    """
    with _importing:
        thread, compiled = get_ident(), re.compile

        def postpone(pattern: Any, flags: int | re.RegexFlag = 0) -> Any:
            if get_ident() != thread or not isinstance(pattern, str | bytes):
                return compiled(pattern, flags)
            return _Later(pattern, int(flags))

        re.compile = postpone
        try:
            yield
        finally:
            re.compile = compiled
