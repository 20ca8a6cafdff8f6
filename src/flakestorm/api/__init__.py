"""flakestorm from Python: the same engine as the command line.

    import flakestorm
    report = flakestorm.load("flakestorm.yaml").contract()
    assert report.verdict == "pass", report.headline

This room is also the one place where the pieces are put together: adapters (agents, boundary, executor, clock) meet the
engine here (`carrying.py`) and nowhere else.
"""

from flakestorm.api.carrying import loop_factory
from flakestorm.api.options import Options
from flakestorm.api.project import Project, load

__all__ = ["Options", "Project", "load", "loop_factory"]
