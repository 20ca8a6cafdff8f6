"""Complaints about a config, with the place they are about."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flakestorm.api.placed import placed, telling
from flakestorm.config import load
from flakestorm.config.model import Chaos
from flakestorm.errors import ConfigError, Misuse
from flakestorm.faults.schedule import Schedule

CONFIG = """version: "2.0"
agent: {endpoint: "http://127.0.0.1:9"}
golden_prompts: [hi]
chaos:
  tool_faults:
    - {mode: error}
    - {mode: error, site: nonsense}
"""


@pytest.fixture
def work(tmp_path: Path) -> Any:
    file = tmp_path / "my.yaml"
    file.write_text(CONFIG)
    return SimpleNamespace(config=load(file), path=file)


def test_a_key_gets_its_line(work: Any) -> None:
    with pytest.raises(ConfigError, match=r"my\.yaml:3: golden_prompts\[0\]: too short$"), telling(work):
        raise ConfigError("too short", key="golden_prompts[0]")


def test_a_fault_that_cannot_be_played_is_told_with_its_place(work: Any) -> None:
    with pytest.raises(ConfigError, match=r"my\.yaml:7: chaos\.tool_faults\[1\]: .*no site"), telling(work):
        Schedule.of(work.config.chaos)


def test_of_two_alike_it_is_the_one_that_was_to_be_played(work: Any) -> None:
    work.path.write_text(CONFIG + "chaos_matrix:\n  - {name: one, tool_faults: [{mode: error, site: nonsense}]}\n")
    work.config = load(work.path)
    with pytest.raises(ConfigError, match=r"my\.yaml:7: chaos\.tool_faults\[1\]"), telling(work):
        Schedule.of(work.config.chaos)
    with pytest.raises(ConfigError, match=r"my\.yaml:9: chaos_matrix\[0\]\.tool_faults\[0\]"), telling(work):
        Schedule.of(work.config.chaos_matrix[0])


def test_a_fault_of_another_file_has_no_place_in_this_one(work: Any, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(CONFIG)
    with pytest.raises(Misuse, match="no site") as caught, telling(work):
        Schedule.of(load(tmp_path / "other.yaml").chaos or Chaos())
    assert not isinstance(caught.value, ConfigError)


def test_other_misuse_stays_what_it_is(work: Any) -> None:
    with pytest.raises(Misuse, match=r"^of another kind$") as caught, telling(work):
        raise Misuse("of another kind")
    assert not isinstance(caught.value, ConfigError)


def test_what_has_a_line_keeps_it(work: Any) -> None:
    with pytest.raises(ConfigError, match=r"^other\.yaml:9: a: b$"), telling(work):
        raise ConfigError("b", file="other.yaml", line=9, key="a")


def test_a_method_is_told_of_in_the_same_way(work: Any) -> None:
    @placed
    def judge(work: Any, key: str, *, said: str) -> None:
        """What it does."""
        raise ConfigError(said, key=key)

    with pytest.raises(ConfigError, match=r"my\.yaml:2: agent\.endpoint: no$"):
        judge(work, "agent.endpoint", said="no")
    assert judge.__doc__ == "What it does."
