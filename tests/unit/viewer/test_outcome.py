import json
from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.reports.document import dumps
from flakestorm.viewer.outcome import of_fork, of_shrink
from report_samples import shrunk

FORK = {
    "format": "flakestorm-fork/1", "tape": "/s/fork.tape", "environment": "pure", "why": "no tool", "served": 1,
    "live": [], "unanswered": ["tool/x#1"], "output": "Hi", "error": None,
}  # fmt: skip


def test_a_forks_document_is_the_last_thing_printed(tmp_path: Path) -> None:
    printed = tmp_path / "stdout.txt"
    said_by_an_agent = json.dumps({**FORK, "tape": "/etc/passwd"}, indent=2)
    printed.write_text(f"thinking\n{said_by_an_agent}\n{json.dumps(FORK, indent=2)}\n")
    found = of_fork(printed)
    assert found is not None
    assert (found.tape, found.output, found.error) == (Path("/s/fork.tape"), "Hi", None)
    assert found.said == {
        "Environment": "pure: no tool",
        "Answered by the tape": "1 call",
        "Called for real": "nothing",
        "Not on the tape": "tool/x#1",
    }


@pytest.mark.parametrize(
    "text", ["", "hello", '{\n  "format": "flakestorm-fork/1"', '{\n  "format": "flakestorm-fork/1"}']
)
def test_no_fork(tmp_path: Path, text: str) -> None:
    printed = tmp_path / "stdout.txt"
    assert of_fork(printed) is None
    printed.write_text(text)
    assert of_fork(printed) is None


def test_a_shrink_is_told_by_its_report(tmp_path: Path) -> None:
    printed, report = tmp_path / "stdout.txt", shrunk()
    printed.write_text(f"thinking\n{dumps(replace(report, findings=()))}\n{dumps(report)}\n")
    found = of_shrink(printed)
    assert found is not None
    assert found.said == {"Breaks": "no-false-booking: it said so", "Faults": "3 before, 1 now", "Runs": "2"}
    assert (found.tape, found.reproduce) == (Path("/s/smallest.tapes/r-0002.tape"), report.findings[0].reproduce)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "it does not fail any more\n",
        dumps(replace(shrunk(), findings=())),
        dumps(replace(shrunk(), runs=())),
        dumps(shrunk())[:-1],
        '{\n  "format": "flakestorm-report/1"}',
    ],
)
def test_no_smallest_case(tmp_path: Path, text: str) -> None:
    printed = tmp_path / "stdout.txt"
    assert of_shrink(printed) is None
    printed.write_text(text)
    assert of_shrink(printed) is None
