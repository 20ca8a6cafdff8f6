"""Members of a JSON object that must be of one type: `ValueError` names the one that is not.

Each has a usual value, where it may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["listed", "number", "text_of", "whole_of"]


def listed(line: Mapping[str, Any], name: str, usual: list[Any] | None = None) -> list[Any]:
    """A member that is a list."""
    if not isinstance(value := line.get(name, usual), list):
        raise ValueError(f"{name!r} must be a list")
    return value


def text_of(line: Mapping[str, Any], name: str, usual: str | None = None) -> str:
    """A member that is a string."""
    if not isinstance(value := line.get(name, usual), str):
        raise ValueError(f"{name!r} must be a string")
    return value


def whole_of(line: Mapping[str, Any], name: str, usual: int | None = None) -> int:
    """A member that is a whole number, not below 0."""
    if not isinstance(value := line.get(name, usual), int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name!r} must be a whole number")
    return value


def number(value: Any) -> float:
    """A time."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError("a time must be a number")
    return float(value)
