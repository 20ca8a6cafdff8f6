import json

import pytest

from flakestorm.core.ledger import Ledger
from flakestorm.tape.writer import Recorder
from unit_cli import run


@pytest.fixture
def tape(tmp_path):
    path = tmp_path / "r-0001.tape"
    Recorder(path, clock=lambda: 0.0, ledger=Ledger(), header={"run": "r-0001", "input": "hello"}).close(output="bye")
    return path


def test_show_prints_text_or_the_documented_object(tape, tmp_path, capsys) -> None:
    assert run("tapes", "show", str(tape)) == 0
    assert "hello" in capsys.readouterr().out
    assert run("tapes", "show", str(tape), "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["format"], shown["input"], shown["output"]) == ("flakestorm-tape/1", "hello", "bye")
    assert run("tapes", "show", str(tape), "--format", "json", "-o", str(tmp_path / "x" / "t.json")) == 0
    assert json.loads((tmp_path / "x" / "t.json").read_text()) == shown


def test_what_is_no_tape_is_refused(tmp_path, capsys) -> None:
    (tmp_path / "x.tape").write_text("hello")
    assert run("tapes", "show", str(tmp_path / "x.tape")) == 2
    assert run("tapes", "show", str(tmp_path / "none.tape")) == 2
    assert "none.tape" in capsys.readouterr().err
