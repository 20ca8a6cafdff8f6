"""The reference is what the code says: pages that are made are made again, and compared."""

import shutil
import sys

import pytest
from scripts.reference import __main__ as made
from scripts.reference import forms, measured, surroundings

from e2e_support import flakestorm, write_config


@pytest.fixture
def folder(tmp_path, monkeypatch):
    copied = shutil.copytree(forms.FOLDER, tmp_path / "reference")
    monkeypatch.setattr(forms, "FOLDER", copied)
    return copied


def run(monkeypatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["reference", *words])
    return made.main()


def test_no_page_is_stale(folder, monkeypatch, capsys) -> None:
    assert run(monkeypatch, "--check") == 0, capsys.readouterr().err


def test_a_stale_page_is_named_and_written_anew(folder, monkeypatch, capsys) -> None:
    told = {name: (folder / name).read_text() for name in ("cli.md", "invariants.md")}
    (folder / "cli.md").write_text(told["cli.md"].replace("--min-score", "--least-score"))
    (folder / "invariants.md").write_text(told["invariants.md"].replace("### completes", "### finishes"))
    assert run(monkeypatch, "--check") == 1
    assert "cli.md, invariants.md" in capsys.readouterr().err
    assert run(monkeypatch) == 0
    assert {name: (folder / name).read_text() for name in told} == told


def test_a_variable_that_the_page_does_not_name_is_noticed(monkeypatch) -> None:
    assert surroundings.unknown() == set()
    monkeypatch.delitem(surroundings._READ, "`FLAKESTORM_DEBUG`")
    assert surroundings.unknown() == {"FLAKESTORM_DEBUG"}


def test_the_readmes_figures_are_those_of_the_benchmarks_tables(tmp_path, monkeypatch) -> None:
    said, told = (measured.ROOT / "docs" / "benchmarks.md").read_text(), measured.figures()
    seconds = told.split(" agent runs")[0].split("| ")[-1].split(",")[0]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "benchmarks.md").write_text(said.replace(f"| {seconds} |", "| 9.99 s |"))
    monkeypatch.setattr(measured, "ROOT", tmp_path)
    assert measured.figures() == told.replace(f"| {seconds},", "| 9.99 s,") != told


def test_what_commands_leave_in_a_project_is_told_of(tmp_path) -> None:
    """Files that somebody might commit, or wonder about."""
    (tmp_path / "my_agent.py").write_text("def answer(text):\n    return 'no'\n")
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "my_agent:answer"},
        contract={
            "name": "c",
            "invariants": [{"type": "contains", "value": "yes", "severity": "critical"}],
            "chaos_matrix": [{"name": "calm"}],
        },
    )
    before = {path.name for path in tmp_path.iterdir()}
    for words, code in (
        (("contract", "run"), 1),
        (("ci",), 1),
        (("replay", "export", "--from-report", "latest"), 0),
        (("record", "--", sys.executable, "-c", ""), 0),
        (("certificate", "latest", "-o", "reports/c.html"), 0),
    ):
        done = flakestorm(tmp_path, *words)
        assert done.code == code, (words, done.err)
    assert (tmp_path / "sessions").is_dir()
    left = {path.name for path in tmp_path.iterdir()} - before - {".flakestorm", "__pycache__"}
    left |= {f".flakestorm/{path.name}" for path in (tmp_path / ".flakestorm").iterdir()}
    told = surroundings.page().partition("## Files that are written")[2]
    unknown = {name for name in left if f"`{name}" not in told}
    assert {name for name in unknown if not name.endswith((".gitignore", "-wal", "-shm"))} == set()
