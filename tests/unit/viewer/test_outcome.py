import json
from pathlib import Path

import pytest

from flakestorm.viewer.orders import SESSION
from flakestorm.viewer.outcome import of_fork, of_shrink

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


def test_a_shrink_is_told_by_its_last_lines_and_its_session(tmp_path: Path) -> None:
    printed, line = tmp_path / "stdout.txt", "flakestorm run --prompt 0 --inject 'tool/x#1=error'"
    text = f"session: x\n3 -> 1 faults in 9 runs; breaks honest: booked\n{line}\n"
    printed.write_text(text)
    found = of_shrink(printed)
    assert found is not None
    assert found.said == {"Breaks": "honest: booked", "Faults": "3 before, 1 now", "Runs": "9"}
    assert (found.tape, found.reproduce) == (None, line)
    tape = tmp_path / "smallest.tapes" / "r-0004.tape"
    tape.parent.mkdir()
    tape.write_text("")
    (tmp_path / SESSION).write_text("# The smallest form\nid: shrunk-r-0004\nname: x\n")
    found = of_shrink(printed)
    assert found is not None
    assert found.tape == tape
    (tmp_path / SESSION).write_text("id: shrunk-../../x\n")  # what is no run's id leads nowhere
    found = of_shrink(printed)
    assert found is not None
    assert found.tape is None


@pytest.mark.parametrize("text", ["", "it does not fail any more\n", "3 -> 1 faults in 9 runs; breaks honest: x\n"])
def test_no_smallest_case(tmp_path: Path, text: str) -> None:
    printed = tmp_path / "stdout.txt"
    printed.write_text(text)
    assert of_shrink(printed) is None
