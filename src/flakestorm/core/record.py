"""`Record`: a frozen value with named fields, as cheap to define as to make. `Slate`: one that may be written to.

A frozen dataclass compiles half a dozen functions of its own when its module is imported, which takes longer than all
else a small module does; a command that judges twenty runs imports a hundred such classes. A msgspec `Struct` has its
methods in C. To whoever asks, a `Record` is a dataclass all the same: `dataclasses.replace`, `fields` and `asdict` work
on it, and what they need to know is found out when the first of them is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field, make_dataclass
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct

__all__ = ["Record", "Slate"]


class _Fields:
    """What `dataclasses` wants to know of a class, found out when it wants to."""

    def __get__(self, _: object, kind: type[Struct]) -> Mapping[str, Field[Any]]:
        return _described(kind)


class Record(Struct, frozen=True):
    """Derive from it and name the fields, as in a dataclass: `class Point(Record, frozen=True)`.

    Equal where type and fields are; hashable where the fields are. Positional and keyword arguments, defaults and
    `match` work as in a dataclass; `msgspec.field(default_factory=...)` makes a default for each.
    """

    __dataclass_fields__: ClassVar[Mapping[str, Field[Any]]] = _Fields()  # type: ignore[assignment]


class Slate(Struct):
    """As `Record`, but its fields may be set; equal where type and fields are, and not hashable."""

    __dataclass_fields__: ClassVar[Mapping[str, Field[Any]]] = _Fields()  # type: ignore[assignment]


@cache
def _described(kind: type[Struct]) -> Mapping[str, Field[Any]]:
    names = kind.__struct_fields__
    defaults = dict(zip(reversed(names), reversed(kind.__struct_defaults__), strict=False))  # those of the last fields
    types = {name: said for of in reversed(kind.__mro__) for name, said in getattr(of, "__annotations__", {}).items()}
    described = [(name, types[name], _field(name, defaults)) for name in names]
    namespace = {"__doc__": "Described."}  # without one, a dataclass makes up its signature, at some length
    plain: Any = make_dataclass(kind.__name__, described, namespace=namespace, init=False, repr=False, eq=False)
    found: Mapping[str, Field[Any]] = plain.__dataclass_fields__
    return found


def _field(name: str, defaults: Mapping[str, Any]) -> Any:
    if name not in defaults:
        return field()
    default = defaults[name]
    factory = getattr(default, "factory", None)  # how msgspec keeps a default that is made anew each time
    return field(default=default) if factory is None else field(default_factory=factory)
