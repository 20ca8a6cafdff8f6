"""Projects to call the command line in."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit_cli import ECHO, NOBODY


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with an agent that repeats what it is told; its config is `ECHO`, or the test module's own `CONFIG`."""
    (tmp_path / "echo_agent.py").write_text("def answer(text):\n    return f'you said {text}'\n")
    (tmp_path / "flakestorm.yaml").write_text(getattr(request.module, "CONFIG", ECHO))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose agent is not there."""
    (tmp_path / "flakestorm.yaml").write_text(NOBODY)
    monkeypatch.chdir(tmp_path)
