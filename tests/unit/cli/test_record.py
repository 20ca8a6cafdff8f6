import sys
from pathlib import Path

import pytest

from flakestorm.cli.options import Globals
from flakestorm.cli.record import config_of, named_tools
from flakestorm.tape.reader import Tape
from unit_cli import run

CONFIG = """
version: "2.0"
agent: {type: command, start: cat, endpoint: unused}
golden_prompts: [hello]
invariants: [{type: completes}]
boundary: {tools: {search: "*/search"}}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_goes_to_the_store_by_default(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("record", "--", sys.executable, "-c", "print('hi')") == 0
    out, err = capfd.readouterr()
    (path,) = (here / ".flakestorm" / "tapes").iterdir()
    assert (out, err) == ("hi\n", f"recorded 0 calls on {path.relative_to(here)}\n")
    header = Tape.open(path).header
    assert header["command"] == {"argv": [sys.executable, "-c", "print('hi')"], "cwd": str(here)}
    assert "environ" not in str(header)


def test_an_input_goes_to_the_configured_agent(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "flakestorm.yaml").write_text(CONFIG)
    assert run("-q", "record", "--input", "hello", "-o", "a.tape") == 0
    assert capfd.readouterr() == ("hello\n", "")
    tape = Tape.open(here / "a.tape")
    assert (tape.input, tape.header["command"]) == ("hello", {"config": str(here / "flakestorm.yaml")})


def test_an_agent_that_fails_is_exit_code_1(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "flakestorm.yaml").write_text(CONFIG.replace("start: cat", "start: 'false'"))
    assert run("record", "--input", "hello", "-o", "a.tape") == 1
    assert "crash" in capfd.readouterr().err


def test_tools_are_named_by_the_config_where_there_is_one(here: Path) -> None:
    assert named_tools(config_of(Globals())) == ()
    (here / "flakestorm.yaml").write_text(CONFIG)
    assert named_tools(config_of(Globals())) == (("search", "*/search"),)


def test_one_thing_is_recorded_at_a_time(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("record") == run("record", "--input", "x", "--", "ls") == 2
    assert "say what to record" in capfd.readouterr().err
