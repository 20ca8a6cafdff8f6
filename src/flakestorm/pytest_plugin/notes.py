"""What the plug-in keeps with a test and with the session: keys of pytest's stashes, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from flakestorm.pytest_plugin.agents import Agents
    from flakestorm.pytest_plugin.runs import Run
    from flakestorm.pytest_plugin.taping import HeldTape

__all__ = ["AGENTS", "RUNS", "TAPED", "TRIAL", "UNJUDGED"]

AGENTS: pytest.StashKey[Agents] = pytest.StashKey()
"""Of the session: the agents that are kept."""

RUNS: pytest.StashKey[list[Run]] = pytest.StashKey()
"""Of a test: the runs of the trial under way."""

TAPED: pytest.StashKey[HeldTape] = pytest.StashKey()
"""Of a test: its tapes, in the trial under way."""

TRIAL: pytest.StashKey[int] = pytest.StashKey()
"""Of a test: which trial is under way, from 1."""

UNJUDGED: pytest.StashKey[str] = pytest.StashKey()
"""Of a test: why the trial under way cannot be judged; `chance` where a fault was left to chance and did not fire."""
