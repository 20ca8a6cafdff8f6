"""Which runs are exported, and by what they are judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.api.exporting import export
from flakestorm.config.load import loads
from flakestorm.core.call import Call, Reply
from flakestorm.engine.events import CellResult, Report, RunResult
from flakestorm.errors import Misuse
from flakestorm.importers.taping import write_tape
from flakestorm.sessions.files import read_sessions

CONFIG = loads("""
version: "2.0"
agent: {type: python, endpoint: "a:b"}
golden_prompts: [x]
invariants: [{id: top, type: completes}]
contract: {name: promises, invariants: [{id: own, type: completes}]}
""")


def run(tape: Path, id: str, **more: object) -> RunResult:  # noqa: A002
    found = RunResult(id, "down", 0, 1, "sent", "", None, 1.0, 0, (), (), {}, str(tape), "flakestorm run --prompt 0")
    return replace(found, **more)  # type: ignore[arg-type]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "r.tape"
    call = Call("CALL", "python://search", kind="tool", name="search")
    write_tape(path, [(call, Reply(200, (("content-type", "text/plain"),), b"found"))], header={"input": "sent"})
    return path


def report(*runs: RunResult, failing: dict[str, str], command: str = "contract run") -> Report:
    cells = tuple(CellResult("down", i, "high", 0, 1, "fail", "because", r) for r, i in failing.items())
    return Report(command, "fail", 1, "", 7, "2026-01-01T00:00:00Z", 1.0, {}, cells, runs)


def test_one_session_per_cell_that_failed(tape: Path, tmp_path: Path) -> None:
    runs = run(tape, "r-1"), run(tape, "r-2", trial=2), run(tape, "r-3", input="mutated"), run(tape, "r-4")
    found = export(report(*runs, failing={"r-1": "own", "r-2": "own", "r-3": "own"}), CONFIG, tmp_path / "out")
    assert [each.run for each in found] == ["r-1", "r-3"]
    (first, second) = read_sessions(tmp_path / "out", contract="")
    assert (first.session.input, second.session.input) == ("sent", "mutated")
    assert first.session.expected_failure == "own: because"
    assert found[0].tape.read_bytes() == tape.read_bytes()


@pytest.mark.parametrize(
    ("rule", "command", "contract"),
    [("own", "contract run", "promises"), ("top", "chaos", "top-level"), ("own", "run", "promises"),
     ("top (chaos)", "ci", "top-level")],
)  # fmt: skip
def test_the_rules_that_were_broken_judge(tape: Path, tmp_path: Path, rule: str, command: str, contract: str) -> None:
    (made,) = export(report(run(tape, "r-1"), failing={"r-1": rule}, command=command), CONFIG, tmp_path / "out")
    assert read_sessions(made.file, contract="")[0].session.contract == contract


def test_faults_of_the_model_go_along(tape: Path, tmp_path: Path) -> None:
    injected = ("llm/m#1=rate_limit", "tool/search#1=error:503", "agent/input#1=memory_poisoning")
    words = f"flakestorm run {' '.join(f'--inject {fault!r}' for fault in injected)}"
    (made,) = export(report(run(tape, "r-1", reproduce=words), failing={"r-1": "own"}), CONFIG, tmp_path / "out")
    assert read_sessions(made.file, contract="")[0].session.faults == ["llm/m#1=rate_limit"]


def test_what_cannot_be_exported(tape: Path, tmp_path: Path) -> None:
    found = report(run(tape, "r-1"), failing={"r-1": "own"})
    with pytest.raises(Misuse, match="the report has no run 'r-9'"):
        export(found, CONFIG, tmp_path, run="r-9")
    tape.unlink()
    with pytest.raises(Misuse, match="the tape of r-1 is gone"):
        export(found, CONFIG, tmp_path)
    assert export(report(run(tape, "r-1"), failing={}), CONFIG, tmp_path) == []
