"""flakestorm from Python: the same engine as the command line.

    import flakestorm
    report = flakestorm.load("flakestorm.yaml").contract()
    assert report.verdict == "pass", report.headline

This room is also the one place where the pieces are put together: adapters (agents, boundary, executor, clock) meet the
engine here (`carrying.py`) and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flakestorm.api.loops import loop_factory
from flakestorm.api.options import OnRay, Options
from flakestorm.api.project import Project, load

__all__ = ["Comparison", "OnRay", "Options", "Project", "Terms", "compare", "load", "loop_factory", "would_run"]

if TYPE_CHECKING:
    from flakestorm.api.comparing import Comparison, Terms, compare, would_run


def __getattr__(name: str) -> Any:
    """What compares is imported when somebody compares."""
    if name not in ("Comparison", "Terms", "compare", "would_run"):
        raise AttributeError(f"module 'flakestorm.api' has no attribute {name!r}")
    from flakestorm.api import comparing

    return getattr(comparing, name)
