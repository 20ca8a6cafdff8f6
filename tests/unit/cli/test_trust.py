from pathlib import Path

import click
import pytest

from flakestorm.api.trusting import Wanted
from flakestorm.cli import trust
from flakestorm.cli.trust import approval, tell_unsealed
from flakestorm.tape.origin import Named

COMMAND = Wanted(Path("a\x1b.tape"), "it carries no seal", Named(("sh", "-c", "a\u202eb"), "/w"))


def test_the_option_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "confirm", None)
    assert approval(trusted=True)(COMMAND)


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "confirm", None)
    assert not approval(trusted=False)(COMMAND)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who says yes to everything."""
    monkeypatch.setattr(trust, "_somebody_is_there", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda text, default, err: (text, default, err) == ("Run it?", False, True))


def test_the_question_shows_command_folder_and_environment(terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert approval(trusted=False)(COMMAND)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "a\\x1b.tape names what is to be run, and is not known to be yours: it carries no seal.",
        "  command      sh -c 'a\\u202eb'",
        "  folder       /w",
        "  environment  this one, without FLAKESTORM_SIGNING_KEY and FLAKESTORM_TRUST_KEY; a tape sets no variable",
        "What it says was answered is told to the program again, as if the world had said so.",
    ]


def test_of_a_config_it_shows_what_that_has_run(
    terminal: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text(
        'version: "2.0"\n'
        'agent: {type: command, start: "python agent.py", restore: "make db", env: {B: "1", A: "2"}}\n'
        "golden_prompts: [x]\n"
    )
    assert approval(trusted=False)(Wanted(Path("a.tape"), "", Named(config=str(tmp_path / "a.yaml"))))
    said = capsys.readouterr().err
    for line in ("  agent        python agent.py", "  restore      make db", "  variables    A, B"):
        assert line in said.splitlines()
    assert approval(trusted=False)(Wanted(Path("a.tape"), "", Named(config=str(tmp_path / "none.yaml"))))
    assert "cannot be told" in capsys.readouterr().err


def test_what_would_scroll_away_is_not_asked_about(terminal: None) -> None:
    assert not approval(trusted=False)(Wanted(Path("a.tape"), "", Named(("x" * 5000,))))


def test_an_unsealed_tape_is_told_of_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_unsealed(quiet=None)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FLAKESTORM_TRUST_KEY", "short")
    tell_unsealed(quiet=True)
    assert capsys.readouterr().err == ""
    tell_unsealed(quiet=None)
    assert "not sealed as yours" in (said := capsys.readouterr().err)
    assert "FLAKESTORM_TRUST_KEY has fewer than 32 characters" in said
