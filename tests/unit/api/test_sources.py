"""Sessions out of recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flakestorm.api.sources import from_file, write_sessions
from flakestorm.config.replays import ReplaySession
from flakestorm.errors import Misuse
from importers_support import cassette, write_yaml


def test_a_session_for_each_run_of_a_file(tmp_path: Path) -> None:
    runs = [
        {"id": n, "trace_id": n, "run_type": "tool", "name": "t", "inputs": {"input": "ask"}, "outputs": {"output": n}}
        for n in "ab"
    ]
    roots = [{"id": f"r{n}", "trace_id": n, "run_type": "chain", "inputs": {"q": f"ask {n}"}} for n in "ab"]
    for run, root in zip(runs, roots, strict=True):
        run["parent_run_id"] = root["id"]
    (tmp_path / "runs.json").write_text(json.dumps([*roots, *runs]))
    found = from_file(tmp_path / "runs.json", contract="c")
    assert [(s.id, s.input, s.contract) for s in found] == [("runs-a", "ask a", "c"), ("runs-b", "ask b", "c")]
    assert [s.tool_responses[0].response for s in found] == ["a", "b"]


def test_a_cassette_tells_no_input(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="does not say what the agent was asked"):
        from_file(write_yaml(tmp_path / "x.yaml", cassette()), contract="c")


def test_files_are_not_written_over_one_another(tmp_path: Path) -> None:
    sessions = [ReplaySession(id=name, input="x") for name in ("a b", "a-b")]
    assert [file.name for file in write_sessions(sessions, tmp_path)] == ["a-b.yaml", "a-b-2.yaml"]
