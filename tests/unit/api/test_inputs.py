"""Inputs that the config does not hold."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flakestorm.api.inputs import demand_keys
from flakestorm.config import load
from flakestorm.errors import ConfigError

CONFIG = """version: "2.0"
agent:
  endpoint: "http://127.0.0.1:9"
  request_template: '{"m": "{prompt}", "to": "{city}"}'
golden_prompts: ["City: Oslo"]
"""


def work(folder: Path, text: str = CONFIG) -> Any:
    file = folder / "my.yaml"
    file.write_text(text)
    return SimpleNamespace(config=load(file), path=file)


def test_what_lacks_a_key_is_named_with_the_template_s_place(tmp_path: Path) -> None:
    project = work(tmp_path)
    demand_keys(project, [(None, "City: Oslo"), ("s", "City: Rome"), (None, "City = Bonn")])
    with pytest.raises(ConfigError, match=r'my\.yaml:4: agent\.request_template: the input "hello": .*\{city\}'):
        demand_keys(project, [(None, "City: Rome"), (None, "hello")])
    with pytest.raises(ConfigError, match=r"my\.yaml:4: agent\.request_template: the input of session 's': "):
        demand_keys(project, [("s", "hello")])


def test_without_a_template_nothing_is_taken_from_an_input(tmp_path: Path) -> None:
    bare = "".join(line for line in CONFIG.splitlines(keepends=True) if "template" not in line)
    demand_keys(work(tmp_path, bare), [(None, "hello")])
