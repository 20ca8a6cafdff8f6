from pathlib import Path

import pytest

import flakestorm
from unit_cli import run


def test_two_empty_tapes_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        with flakestorm.record(tmp_path / f"{name}.tape"):
            pass
    a, b = str(tmp_path / "a.tape"), str(tmp_path / "b.tape")
    assert run("diff", a, b) == 0
    assert "the same" in capsys.readouterr().out
    assert run("diff", a, b, "-o", str(tmp_path / "d.json")) == 0
    assert '"equal": true' in (tmp_path / "d.json").read_text()


def test_misuse_and_damage_are_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", "none.tape", "none.tape") == 2
    assert "none.tape" in capsys.readouterr().err
    assert run("diff", "a.tape", "b.tape", "--format", "junit") == 2
    assert "junit" in capsys.readouterr().err
    assert run("diff", "a.tape") == 2
