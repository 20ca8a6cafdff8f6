"""The agents of a session."""

from pathlib import Path

import pytest

from flakestorm.errors import ConfigError
from flakestorm.pytest_plugin.agents import Agents, slug
from plugin_support import project


def test_each_is_started_once_and_a_failure_is_not_tried_again(tmp_path) -> None:
    folder = project(tmp_path, "", agent="nobody_at_home:answer")
    agents = Agents(tmp_path, tmp_path)
    errors = []
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            agents.kept(folder / "flakestorm.yaml")
        errors.append(caught.value)
    assert errors[0] is errors[1]
    agents.close()


def test_paths_are_told_as_seen_from_where_the_user_is(tmp_path) -> None:
    config = project(tmp_path, "") / "flakestorm.yaml"
    assert Agents(tmp_path, tmp_path).project(config).path == Path("flakestorm.yaml")
    assert Agents(tmp_path, tmp_path / "below").project(config).path == config


def test_every_run_has_an_id_that_can_be_a_file(tmp_path) -> None:
    agents = Agents(tmp_path, tmp_path)
    assert [agents.next_run("test_a[x/y z]") for _ in range(2)] == ["test_a-x-y-z-0001", "test_a-x-y-z-0002"]
    assert slug("[..]") == "test"
    assert len(slug("x" * 500)) == 100
