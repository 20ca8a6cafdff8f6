"""Putting something in the place of a function, and putting it back.

The types of `datetime` are made in C and cannot be set an attribute. Replacing the whole class would break everybody
who compares classes (pickle, pydantic, `from datetime import datetime` before us), so its method is replaced in the
type's own dictionary, and Python is told that the type has changed.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["put_back", "rebind", "replace"]

_done: list[tuple[Any, str, Any]] = []
_swaps: dict[int, tuple[Any, Any]] = {}


def replace(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    """Put `wrap(what is there)` there; nothing is done where there is nothing.

    Args:
        owner: a module or a class.
        name: the attribute, its own or an inherited one.
        wrap: makes the replacement.
    """
    original = vars(owner).get(name)
    own = original is not None
    if not own:
        original = getattr(owner, name, None)
        if original is None:
            return
    replacement = wrap(original)
    _put(owner, name, replacement)
    _done.append((owner, name, original if own else None))
    if not isinstance(owner, type):
        _swaps[id(original)] = (original, replacement)


def rebind() -> None:
    """Replace what other modules took over by name before (`from time import time`); the standard library's and
    flakestorm's own stay as they are."""
    spared = set(getattr(sys, "stdlib_module_names", ())) | {"flakestorm"}
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", None)
        if type(space) is not dict or str(space.get("__name__")).partition(".")[0] in spared:
            continue
        for name, value in list(space.items()):
            swap = _swaps.get(id(value))
            if swap is not None and swap[0] is value:
                space[name] = swap[1]
                _done.append((module, name, value))


def put_back() -> None:
    """Undo all of it."""
    while _done:
        owner, name, original = _done.pop()
        if original is None:
            delattr(owner, name)
        else:
            _put(owner, name, original)
    _swaps.clear()


def _put(owner: Any, name: str, value: Any) -> None:
    try:
        setattr(owner, name, value)
    except TypeError:
        import ctypes
        import gc

        (space,) = gc.get_referents(vars(owner))
        space[name] = value
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
