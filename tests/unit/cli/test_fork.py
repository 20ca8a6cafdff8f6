from pathlib import Path

import click
import pytest

from flakestorm.api.forked import Change, Forked
from flakestorm.cli.fork import _change, _tell
from flakestorm.cli.options import Globals
from flakestorm.core.site import Site
from flakestorm.errors import Misuse
from unit_cli import run

SITE = Site("tool", "search", 1)


def test_exactly_one_change_is_said(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(b"{}")
    assert _change(tmp_path / "r.json", None, False, None) == Change(b"{}")
    assert _change(None, "empty", False, None) == Change(None, "empty")
    assert _change(None, None, True, None) == Change()
    for wrong in ((None, None, False, None), (None, "empty", True, None)):
        with pytest.raises(Misuse, match="--resample"):
            _change(*wrong)
    with pytest.raises(Misuse, match="cannot be read"):
        _change(tmp_path, None, False, None)


def test_what_is_said_holds_nothing_of_an_agent_as_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    forked = Forked(
        Path("b.tape"), SITE, "unrestored", "called for real: x", 1, ("a#1",), ("\x1b[31m",), "out", "\x1b[31m"
    )
    _tell(Globals(), Path("a.tape"), Change(), forked)
    said = capsys.readouterr()
    assert said.out == "out\n"
    assert "1 call from the tape, 1 live" in said.err
    assert "environment: unrestored (called for real: x)" in said.err
    assert "\x1b" not in click.unstyle(said.err) + said.err


def test_a_child_needs_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fork", "a.tape", "--at", "tool/search#1", "--resample") == 2
    assert "-o" in capsys.readouterr().err
