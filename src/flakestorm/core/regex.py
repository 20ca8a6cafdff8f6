"""Patterns that are compiled when they are first used: most modules have some, and most commands use few of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["later"]


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
