from pathlib import Path

import click
import pytest

from flakestorm.api.verifying import Verified
from flakestorm.cli.options import Globals
from flakestorm.cli.verify_tape import _print, _split
from flakestorm.errors import Misuse
from unit_cli import run


def test_options_may_follow_the_tape_and_a_command_follows_two_dashes() -> None:
    given, tape, command = _split(("a.tape", "--format", "json", "--match=strict", "-q", "--", "x", "-q"))
    assert (given, tape, command) == (
        {"format": "json", "--match": "strict", "quiet": "1"},
        Path("a.tape"),
        ("x", "-q"),
    )
    assert _split(("a.tape", "--trust-tape", "x"))[0] == {"--trust-tape": "1"}
    assert _split(("a.tape", "x", "y"))[2] == ("x", "y")
    with pytest.raises(click.UsageError, match="--wrong"):
        _split(("a.tape", "--wrong"))
    with pytest.raises(Misuse, match="needs a value"):
        _split(("a.tape", "-c"))


def test_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _print(Globals(), Path("a.tape"), Verified(2, {"exact": 1, "diverged": 1}, ["llm/x#1 \x1b[31mdiverged"]))
    out = capsys.readouterr().out
    assert "a.tape: 2 recorded; requests of the replay: 1 diverged, 1 exact" in out
    assert "\x1b" not in out
    _print(Globals(), Path("a.tape"), Verified(1, {"exact": 1}))
    assert "equal" in capsys.readouterr().out


def test_a_tape_that_is_not_there_is_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("verify-tape", "none.tape") == 2
    assert "none.tape" in capsys.readouterr().err
