"""`flakestorm doctor`, called in process; `tests/e2e/test_doctor.py` runs it as a stranger would."""

import json
import sys

import pytest

from unit_cli import run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_config_or_a_command_it_says_what_is_missing(capsys) -> None:
    assert run("doctor") == 2
    assert "flakestorm.yaml" in capsys.readouterr().err


def test_forms_it_does_not_have(capsys) -> None:
    assert run("doctor", "--format", "junit", "--", "true") == 2
    assert "no form junit" in capsys.readouterr().err


def test_a_program_that_is_not_there(capsys) -> None:
    assert run("doctor", "--", "no-such-program-here") == 3
    assert "no-such-program-here" in capsys.readouterr().out


def test_a_program_that_says_the_same_again(folder, capsys) -> None:
    code = "import uuid; print(uuid.uuid4())"
    assert run("doctor", "--trials", "2", "--", sys.executable, "-c", code) == 0
    assert "the output were the same in 2 of 2 replays" in capsys.readouterr().out
    assert run("doctor", "--trials", "1", "--format", "json", "-o", "found.json", "--", sys.executable, "-c", code) == 0
    found = json.loads((folder / "found.json").read_text())
    assert (found["format"], found["deterministic"], found["replays"]) == ("flakestorm-doctor/1", True, 1)


def test_a_program_that_does_not(capsys) -> None:
    code = "import os; print('pid', os.getpid())"
    assert run("doctor", "--trials", "1", "--", sys.executable, "-c", code) == 1
    shown = capsys.readouterr().out
    assert "not deterministic: output" in shown
    assert "likely source: pid" in shown


def test_the_config_lends_its_environment_to_a_command(folder, capsys) -> None:
    (folder / "flakestorm.yaml").write_text(
        "version: '2.0'\nagent: {endpoint: 'http://127.0.0.1:1/x', env: {WORD: hello}}\ngolden_prompts: [a]\n"
    )
    code = "import os; print(os.environ['WORD'])"
    assert run("doctor", "--trials", "1", "--", sys.executable, "-c", code) == 0
    assert run("doctor") == 2
    assert "agent.start" in capsys.readouterr().err
