"""Faults that other distributions bring: entry points of the group `flakestorm.faults`.

The entry point's name is the mode. What it loads is a fault that says which list of a scenario it belongs to::

    @fault("tool")                                     # my_faults.py
    def noop(spec: ToolFault, scene: Scene) -> Interceptor: ...

    [project.entry-points."flakestorm.faults"]         # pyproject.toml
    noop = "my_faults:noop"

docs/how-to/write-a-fault.md goes through it step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from flakestorm.core.record import Record
from flakestorm.core.registry import Registry
from flakestorm.errors import Misuse

if TYPE_CHECKING:  # slow to import, and needed only where a mode is not built in
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "Family", "FaultRegistry", "Form", "fault"]

GROUP = "flakestorm.faults"
"""The entry-point group."""

Family = Literal["tool", "llm", "context", "conversation"]
"""What a fault is done to: a tool's call (`tool_faults`), a model's reply (`llm_faults`), or, as a context attack, a
tool's call or the conversation that the model is told."""

Form = Literal["tool", "llm", "context", "conversation", "result", "context_result"]
"""What a registry of faults holds: a family, or the second form of a family's faults, which is for tools' results."""

_RESULT: dict[str, Form] = {"tool": "result", "context": "context_result"}

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_FORMS = "__flakestorm_fault__"


def fault(family: Family, *, result: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """Decorator: say whose fault a function is, so that it can be an entry point of the group `flakestorm.faults`.

    Args:
        family: see `Family`.
        result: of a fault of tools' calls, its form for tools whose calls no seam can see (a `ResultMode`).

    Raises:
        Misuse: something that is not for tools' calls is given a form for results.
    """
    if result is not None and family not in _RESULT:
        raise Misuse(f"only a fault of tools can have a form for results, and this one is of the family {family!r}")

    def mark(function: F) -> F:
        setattr(function, _FORMS, {family: function} | ({} if result is None else {_RESULT[family]: result}))
        return function

    return mark


class _Brought(Record, frozen=True):
    """A plug-in as a registry wants it: one of its forms."""

    point: EntryPoint
    form: Form

    @property
    def value(self) -> str:
        """Where it comes from."""
        return self.point.value

    def load(self) -> Any:
        """The form's function."""
        loaded = self.point.load()
        forms = getattr(loaded, _FORMS, None)
        if forms is None:
            raise TypeError("it does not say whose fault it is; decorate it with flakestorm.faults.plugins.fault(...)")
        return forms[self.form]


class FaultRegistry(Registry[T]):
    """The faults of one form, built in or brought by plug-ins.

    Args:
        what: what they are, for messages.
        form: which.
        homes: the module that registers each built-in mode.
    """

    def __init__(self, what: str, form: Form, homes: Mapping[str, str] | None = None) -> None:
        super().__init__(what, GROUP, homes)
        self._form = form

    def _plugins(self) -> dict[str, EntryPoint]:
        if self._found is None:
            from importlib.metadata import entry_points

            brought = {p.name: _Brought(p, self._form) for p in entry_points(group=GROUP) if self._form in _forms(p)}
            self._found = cast("dict[str, EntryPoint]", brought)
        return self._found


@cache
def _forms(point: EntryPoint) -> frozenset[str]:
    """The forms that a plug-in has; all, where it cannot be told, so that whoever asks for it learns why."""
    try:
        return frozenset(getattr(point.load(), _FORMS))
    except Exception:
        return frozenset(get_args(Family))
