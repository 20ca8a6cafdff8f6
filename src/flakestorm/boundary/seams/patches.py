"""Replacing an attribute of somebody else's class, and putting back exactly what was there; for as long as wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

__all__ = ["Counted", "Patch"]


class Counted:
    """What the first who wants it puts in, and the last takes out.

    Args:
        put_in, take_out: do so; called under `lock`.
        then: called whenever it is in, outside the lock; where that fails, it is not wanted any more.
    """

    def __init__(
        self, put_in: Callable[[], None], take_out: Callable[[], None], then: Callable[[], None] = lambda: None
    ) -> None:
        self._put_in, self._take_out, self._then = put_in, take_out, then
        self.lock, self.wanted = threading.Lock(), 0

    def install(self) -> None:
        """It is wanted, once more."""
        with self.lock:
            self.wanted += 1
            if self.wanted == 1:
                self._put_in()
        try:
            self._then()
        except BaseException:
            self.uninstall()
            raise

    def uninstall(self) -> None:
        """It is wanted once less; without an `install` this does nothing."""
        with self.lock:
            if self.wanted == 1:
                self._take_out()
            self.wanted = max(self.wanted - 1, 0)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While entered, it is in."""
        self.install()
        try:
            yield
        finally:
            self.uninstall()


class Patch:
    """One attribute of one class or module, replaced by a wrapper around it.

    Args:
        owner: the class or module.
        name: the attribute; the class must define it itself, so that subclasses keep their own.
        wrap: makes the replacement of the original.
    """

    __slots__ = ("_original", "_replacement", "_wrap", "name", "owner")

    def __init__(
        self, owner: type | ModuleType, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        self.owner, self.name, self._wrap = owner, name, wrap
        self._original: Callable[..., Any] | None = None
        self._replacement: Callable[..., Any] | None = None

    def apply(self) -> None:
        """Put the wrapper in.

        Raises:
            AttributeError: this version of the library has no such attribute.
        """
        original = vars(self.owner).get(self.name)
        if original is None:
            raise AttributeError(f"{_place(self.owner)} has no {self.name}")
        self._original, self._replacement = original, self._wrap(original)
        setattr(self.owner, self.name, self._replacement)

    def revert(self) -> None:
        """Put the original back. If another tool has wrapped ours since, its wrapper stays, and ours inside it: with no
        crossing active it passes every call untouched."""
        if self._replacement is not None and vars(self.owner).get(self.name) is self._replacement:
            setattr(self.owner, self.name, self._original)
        self._original = self._replacement = None

    def __repr__(self) -> str:
        return f"<patch of {_place(self.owner)}.{self.name}>"


def _place(owner: type | ModuleType) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
