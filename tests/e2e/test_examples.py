"""Every example does what its README says; those made with frameworks: `tests/agents`, in Node: `tests/foreign`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples_support import EXAMPLES, FRAMEWORKS, HERE, NODE, Example, copied, try_out
from flakestorm.config import load


@pytest.mark.parametrize("example", HERE, ids=lambda example: example.name)
def test_one_command_shows_what_its_readme_says(example: Example, tmp_path: Path) -> None:
    try_out(example, copied(tmp_path), again=example.name == "openai")


def test_the_index_names_every_example_and_its_command() -> None:
    index = (EXAMPLES / "README.md").read_text()
    folders = {path.parent.name for path in EXAMPLES.glob("*/flakestorm.yaml")}
    assert folders == {path.name for path in EXAMPLES.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders == {example.name for example in (*HERE, *FRAMEWORKS, *NODE)} | {"pytest"}
    rows = dict(re.findall(r"^\| \[.*?\]\((\S+?)\) \|.*\| `(.*?)` \|$", index, re.MULTILINE))
    commands = {name: f"flakestorm contract run -c examples/{name}/flakestorm.yaml" for name in folders}
    assert rows == commands | {"pytest": "pytest examples/pytest"}
    assert "](examples/README.md)" in (EXAMPLES.parent / "README.md").read_text()


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in EXAMPLES.glob("*/flakestorm.yaml")), ids=lambda f: f.name
)
def test_each_has_all_that_it_needs(folder: Path) -> None:
    readme = (folder / "README.md").read_text()
    assert load(folder / "flakestorm.yaml").golden_prompts
    needs = "package.json" if folder.name == "node" else "requirements.txt"
    assert (folder / needs).is_file()
    assert f"examples/{folder.name}" in readme
    for target in re.findall(r"\]\((?!http)([^)#]+)", readme):
        assert (folder / target).exists(), target
