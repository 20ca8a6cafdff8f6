"""Runs as tests see them, made by hand."""

from pathlib import Path
from typing import Any

from flakestorm.contracts.base import RunView
from flakestorm.pytest_plugin.runs import Run, RunTape


def made(**more: Any) -> Run:
    """A run of which only this much matters."""
    view = RunView(input="a", exchanges=more.pop("exchanges", ()), held=more.pop("held", True))
    given: dict[str, Any] = {"output": "b", "error": None, "planned": (), "fired": (), "chance": False, **more}
    return Run(input="a", latency_ms=1.0, tape=RunTape(Path("x.tape"), view), masked=(), seed=1, reproduce="", **given)
