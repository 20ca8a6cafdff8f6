"""Replay sessions and their sources as data."""

from __future__ import annotations

import pytest

from config_support import refused
from flakestorm.config.replays import LangfuseFile, LangSmithProject, LangSmithRun, Replays, ReplaySession, TraceFile


def test_a_session_stands_in_a_file_or_inline() -> None:
    assert ReplaySession(file="a.yaml").contract == "default"
    assert ReplaySession(id="a", input="b").source == "manual"
    assert "needs either 'file', or 'id' and 'input'" in refused({"id": "a"}, ReplaySession)
    assert "U+0000" in refused({"file": "a\0"}, ReplaySession)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"type": "langsmith", "project": "p"}, LangSmithProject),
        ({"type": "langsmith_run", "run_id": "r"}, LangSmithRun),
        ({"type": "otel", "file": "f"}, TraceFile),
        ({"type": "langfuse", "file": "f"}, LangfuseFile),
    ],
)
def test_sources_are_told_apart_by_type(source: dict[str, str], kind: type) -> None:
    assert type(Replays.of({"sources": [source]}).sources[0]) is kind


def test_the_status_of_a_call_that_broke_is_0() -> None:
    replays = Replays.of(
        {"sessions": [{"id": "a", "input": "b", "context": None, "tool_responses": [{"tool": "t", "status": 0}]}]}
    )
    assert replays.sessions[0].tool_responses[0].status == 0
    assert replays.sessions[0].context == []
