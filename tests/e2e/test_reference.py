"""The reference is what the code says: pages that are made are made again, and compared."""

import shutil
import sys

import pytest
from scripts.reference import __main__ as made
from scripts.reference import forms, measured, surroundings


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
