import json
from pathlib import Path

import pytest

from flakestorm.cli.compare import form_of
from flakestorm.cli.options import Globals
from flakestorm.errors import Misuse
from unit_cli import run


def test_the_form_is_the_one_asked_for_else_the_files() -> None:
    assert form_of(Globals()) == "json"
    assert form_of(Globals(output=Path("x.md"))) == "markdown"
    assert form_of(Globals(output=Path("x.md"), format="terminal")) == "terminal"
    with pytest.raises(Misuse, match="no form 'sarif'"):
        form_of(Globals(format="sarif"))


def test_a_comparison_has_a_folder_of_its_own_and_is_saved(folder, capsys) -> None:
    assert run("compare", "flakestorm.yaml", "flakestorm.yaml", "--max-pairs", "2") == 3
    out = capsys.readouterr().out
    assert out.startswith("INCONCLUSIVE")
    (file,) = (folder / "reports").glob("*-compare/compare.json")
    assert len(list(file.parent.glob("tapes/*/*.tape"))) == 4
    assert file.with_suffix(".html").exists()
    [saved] = [line.split()[1] for line in out.splitlines() if line.startswith("saved: ")]
    assert run("report", saved, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["pairs"]["judged"] == 2
    assert run("report", saved, "-o", "again.md") == 0
    assert (folder / "again.md").read_text().startswith("## Inconclusive")


def test_machines_get_the_document_and_the_quiet_a_line(folder, capsys) -> None:
    words = ["compare", "flakestorm.yaml", "flakestorm.yaml", "--max-pairs", "2"]
    assert run(*words, "--format", "json") == 3
    assert json.loads(capsys.readouterr().out)["format"] == "flakestorm-compare/1"
    assert run(*words, "-q", "-o", "x.json") == 3
    assert capsys.readouterr().out.startswith("inconclusive: too few pairs")


def test_a_dry_run_runs_nothing(folder, capsys) -> None:
    assert run("compare", "flakestorm.yaml", "flakestorm.yaml", "--dry-run") == 0
    out = capsys.readouterr().out
    assert out.count("flakestorm.yaml: at most 200 runs would be made") == 2
    assert out.count("cost: unknown") == 2
    assert not (folder / "reports").exists()
