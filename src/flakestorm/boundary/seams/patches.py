"""Replacing an attribute of somebody else's class, and putting back exactly what was there."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["Patch"]


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
