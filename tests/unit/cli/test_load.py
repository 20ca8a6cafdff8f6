import json
from pathlib import Path

import pytest

from unit_cli import run

CONFIG = (
    'version: "2.0"\nagent: {type: python, endpoint: "loaded_agent:answer"}\ngolden_prompts: [hi]\n'
    "invariants: [{type: completes}]\nload: {users: [1, 2], runs: 2}\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flakestorm.yaml").write_text(CONFIG)
    Path("loaded_agent.py").write_text("def answer(text):\n    return text\n")


def test_levels_come_from_the_config_or_the_command_line() -> None:
    assert run("load", "-o", "a.json", "-q") == 0
    assert run("load", "--users", "3, 4", "--runs", "1", "-o", "b.json", "-q") == 0
    levels = [json.loads(Path(name).read_text())["load"]["levels"] for name in ("a.json", "b.json")]
    assert [[(level["users"], level["runs"]) for level in found] for found in levels] == [
        [(1, 2), (2, 2)],
        [(3, 3), (4, 4)],
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--users", "many"], "not a list of numbers"),
        (["--users", "10,1"], "must rise"),
        (["--users", "1.5"], "not a list of numbers"),
        (["--rates", "few"], "not a list of numbers"),
        (["--rates", "nan"], "load"),
        (["--rates", "0"], "load"),
        (["--rates", "5,1"], "must rise"),
        (["--rates", "5", "--users", "1"], "and not both"),
        (["--users", "0,1"], "load"),
        (["--users", "501"], "load"),
        (["--concurrency", "3"], "the levels (--users) say"),
        (["--early-stop"], "load knows no early stop"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str, capsys) -> None:
    assert run("load", *words) == 2
    assert said in capsys.readouterr().err


def test_how_many_runs_there_would_be(capsys) -> None:
    assert run("load", "--dry-run", "--users", "1,10,100") == 0
    assert "112 runs would be made" in capsys.readouterr().out
