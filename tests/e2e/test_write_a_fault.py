"""docs/how-to/write-a-fault.md, executed: its files become a distribution, and its faults are played and tested."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import flakestorm as package
from e2e_support import clean_env, flakestorm, write_config

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "write-a-fault.md").read_text()

AGENT = """
def search(to: str) -> str:
    return f"three flights to {to}"

TOOLS = [search]

def agent(prompt: str) -> str:
    try:
        return search("Oslo")
    except RuntimeError as error:
        return f"The search failed: {error}"
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def installed(tmp_path) -> dict[str, str]:
    """The page's distribution, as an installer would lay it down; the environment in which it is found."""
    place = tmp_path / "site"
    info = place / "my_faults-1.0.dist-info"
    info.mkdir(parents=True)
    first, second, test = blocks("python")
    (place / "my_faults.py").write_text(f"{first}\n\n{second}")
    (place / "test_my_faults.py").write_text(test)
    (project,) = blocks("toml")
    described = tomllib.loads(project)["project"]
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: {described['version']}\n"
    )
    lines = [
        f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in points.items())
        for group, points in described["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    source = str(Path(package.__file__).parents[1])
    return {"PYTHONPATH": os.pathsep.join((str(place), source))}


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "program.py").write_text(AGENT)
    (matrix,) = blocks("yaml")
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "program:agent", "tools": "program:TOOLS"},
        invariants=[{"id": "answers", "type": "completes"}],
        contract={"name": "c", "invariants": [{"id": "answers", "type": "completes"}], **yaml.safe_load(matrix)},
    )
    return tmp_path


def test_its_faults_are_modes_like_any_other(project, installed) -> None:
    done = flakestorm(project, "contract", "run", env=installed, report=True)
    tea = done.run("tea-time")
    assert tea["output"].startswith("The search failed: ")
    assert [(f["site"], f["mode"], f["detail"]) for f in tea["faults"]["fired"]] == [("tool/search#1", "teapot", "418")]
    assert done.cell("tea-time", "answers")["verdict"] == "pass"
    assert done.cell("nothing", "answers")["verdict"] == "inconclusive"
    assert done.run("nothing")["output"] == "three flights to Oslo"
    assert done.code == 3


def test_its_command_does_what_it_says(project, installed) -> None:
    (line,) = re.findall(r"^\$ flakestorm (.*)$", PAGE, re.MULTILINE)
    done = flakestorm(project, *shlex.split(line), env=installed, report=True)
    assert done.report is not None
    assert "no coffee" in done.report["runs"][0]["output"]
    assert done.code == 0


def test_its_test_passes(installed, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_faults.py"],
        cwd=tmp_path / "site", env=clean_env(installed), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_without_the_distribution_the_modes_are_unknown(project) -> None:
    done = flakestorm(project, "contract", "validate")
    assert done.code == 2
    assert "unknown tool fault mode 'teapot'" in done.err


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", PAGE):
        assert (ROOT / "docs" / "how-to" / target).exists(), target
