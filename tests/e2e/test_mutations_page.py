"""docs/reference/mutations.md, executed: its config, its commands, its table and its plug-in."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from e2e_support import flakestorm
from flakestorm.config.vocabulary import MUTATION_WEIGHTS
from flakestorm.mutations.generate import operators_of

PAGE = (
    (Path(__file__).resolve().parents[2] / "docs" / "reference" / "mutations.md")
    .read_text()
    .partition("<!-- made by")[0]
)
AGENT = "def answer(text):\n    return 'booked: Oslo'\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_agent.py").write_text(AGENT)
    (tmp_path / "flakestorm.yaml").write_text(blocks("yaml")[0])
    return tmp_path


def test_the_config_and_the_commands_work(folder) -> None:
    for line in blocks("console")[0].splitlines():
        done = flakestorm(folder, *shlex.split(line.removeprefix("$ "))[1:])
        assert done.code == 0, (line, done.out, done.err)


def test_the_table_is_complete() -> None:
    lines = re.findall(r"^\| `(.*) \|$", PAGE, re.MULTILINE)
    rows = [[cell.strip(" `") for cell in line.split("|")] for line in lines]
    assert {name: float(weight) for name, weight, *_ in rows} == MUTATION_WEIGHTS
    for name, _, benign, attack in rows:
        if name != "custom":
            kinds = {operator.kind for operator in operators_of(name, {})}
            assert (bool(benign.strip()), bool(attack.strip())) == ("benign" in kinds, "attack" in kinds), name


def test_the_plug_in_is_found(folder) -> None:
    place = folder / "site"
    info = place / "my_mutations-1.0.dist-info"
    info.mkdir(parents=True)
    (place / "my_mutations.py").write_text(blocks("python")[0])
    described = tomllib.loads(blocks("toml")[0])["project"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: 1.0\n")
    points = described["entry-points"]["flakestorm.mutations"]
    lines = "\n".join(f"{k} = {v}" for k, v in points.items())
    (info / "entry_points.txt").write_text(f"[flakestorm.mutations]\n{lines}\n")
    config = yaml.safe_load(blocks("yaml")[0])
    config["mutations"] = {"types": ["pirate"], "count": 2}
    (folder / "flakestorm.yaml").write_text(yaml.safe_dump(config))
    import os

    path = os.pathsep.join(filter(None, (str(place), os.environ.get("PYTHONPATH"))))
    done = flakestorm(folder, "run", env={"PYTHONPATH": path}, report=True)
    assert done.report is not None, done.err
    assert {run["mutation"]["type"] for run in done.report["runs"]} == {"pirate"}
    assert re.match(r"(Arr|Ahoy|Avast)! Book", done.report["runs"][0]["input"])
