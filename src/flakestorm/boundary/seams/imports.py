"""Noticing that a library is imported, without importing it.

A finder at the head of `sys.meta_path` looks every import's name up in a small set. For a name it waits for, it asks
the finders behind it, as Python would have, and has the module handed over right after it was executed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["ImportWatch"]


class ImportWatch:
    """Calls back once for each awaited library, when its import has succeeded.

    It is a finder by what it can do: `importlib.abc`, which has a class for them, brings `importlib.resources` along.

    Args:
        imported: is given the library.
    """

    def __init__(self, imported: Callable[[ModuleType], None]) -> None:
        self._imported = imported
        self._awaited: set[str] = set()

    def start(self, names: Iterable[str]) -> None:
        """Await these libraries, by top-level name."""
        self._awaited.update(names)
        if self._awaited and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Await nothing more."""
        self._awaited.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the awaited library is; None for everything else, which the finders behind this one then find."""
        if fullname not in self._awaited:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if finder is self or find is None else find(fullname, path, target)
            if spec is not None:
                self._listen(spec)
                return spec
        return None

    def _listen(self, spec: ModuleSpec) -> None:
        """Have the spec's own loader, which stays what it is, tell when it has executed the module."""
        loader = spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ == spec.name:
                vars(loader).pop("exec_module", None)
                if spec.name in self._awaited:
                    self._awaited.discard(spec.name)
                    self._imported(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]  # on this one loader, until it has run
