"""flakestorm: the agent reliability engine.

    import flakestorm
    report = flakestorm.load("flakestorm.yaml").contract()

    with flakestorm.record("booking.tape"):
        book("a flight to Oslo")
    flakestorm.replay("booking.tape", lambda: book("a flight to Oslo"))

The engine is imported when it is first asked for, so that `import flakestorm` costs next to nothing.
"""

from __future__ import annotations

from flakestorm.version import __version__

TYPE_CHECKING = False  # `typing` is half as long to import as a command, which puts the garbage collector off first
if TYPE_CHECKING:
    from typing import Any

    from flakestorm.api import Comparison, Options, Project, Terms, compare, load
    from flakestorm.api.forked import Forked
    from flakestorm.api.forking import fork
    from flakestorm.api.recording import record
    from flakestorm.api.replaying import replay
    from flakestorm.engine.events import Report
    from flakestorm.errors import TapeMismatch

__all__ = [
    "Comparison",
    "Forked",
    "Options",
    "Project",
    "Report",
    "TapeMismatch",
    "Terms",
    "__version__",
    "compare",
    "fork",
    "load",
    "record",
    "replay",
]

_HOMES = {
    "Comparison": "flakestorm.api",
    "Forked": "flakestorm.api.forked",
    "Options": "flakestorm.api",
    "Project": "flakestorm.api",
    "Report": "flakestorm.engine.events",
    "Terms": "flakestorm.api",
    "compare": "flakestorm.api",
    "TapeMismatch": "flakestorm.errors",
    "fork": "flakestorm.api.forking",
    "load": "flakestorm.api",
    "record": "flakestorm.api.recording",
    "replay": "flakestorm.api.replaying",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'flakestorm' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
