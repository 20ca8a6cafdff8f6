"""Reading the marker."""

from types import SimpleNamespace
from typing import Any

import pytest

from flakestorm.config.load import loads
from flakestorm.errors import Misuse
from flakestorm.pytest_plugin.marks import Mark, config_file
from plugin_support import CONFIG


def item(*args: Any, **settings: Any) -> Any:
    mark = SimpleNamespace(args=args, kwargs=settings) if args or settings else None
    return SimpleNamespace(iter_markers=lambda name: [mark] if mark and name == "flakestorm" else [])


def test_no_marker_breaks_nothing() -> None:
    assert Mark.of(item()) == Mark()
    assert not Mark().breaks(loads(CONFIG % "a:b"), "x").chaos


def test_everything_that_is_named_breaks_together() -> None:
    mark = Mark.of(
        item(
            profile="api_outage",
            scenario="search-down",
            faults=["llm/*=rate_limit"],
            inject=["tool/search#2=error:503"],
            tool_faults=[{"tool": "book", "mode": "timeout"}],
            llm_faults=[{"mode": "empty"}],
            context_attacks=[{"type": "overflow"}],
        )
    )
    scenario = mark.breaks(loads(CONFIG % "a:b"), "x")
    assert [fault.tool for fault in scenario.tool_faults] == ["*", "search", "*", "book"]
    assert [fault.mode for fault in scenario.llm_faults] == ["timeout", "rate_limit", "empty"]
    assert [attack.type for attack in scenario.context_attacks] == ["overflow"]
    assert scenario.name == "x"


@pytest.mark.parametrize(
    "settings",
    [{"trials": True}, {"trials": 1.5}, {"trials": 0}, {"min_pass_rate": -0.1}, {"min_pass_rate": "1"},
     {"tool_faults": {"mode": "error"}}, {"inject": "tool/x#1=error"}, {"trails": 1}],
)  # fmt: skip
def test_what_makes_no_sense(settings) -> None:
    with pytest.raises(Misuse):
        Mark.of(item(**settings))


def test_a_fault_that_cannot_be_read() -> None:
    with pytest.raises(Misuse, match="mod"):
        Mark(tool_faults=[{"mod": "error"}]).breaks(loads(CONFIG % "a:b"), "x")


def test_the_config_is_in_the_tests_folder_or_in_rootdir(tmp_path) -> None:
    below = tmp_path / "tests"
    below.mkdir()
    test: Any = SimpleNamespace(config=SimpleNamespace(rootpath=tmp_path), path=below / "test_a.py")
    with pytest.raises(Misuse, match="flakestorm init"):
        config_file(test, None)
    (tmp_path / "flakestorm.yaml").touch()
    (tmp_path / "other.yaml").touch()
    assert config_file(test, None) == tmp_path / "flakestorm.yaml"
    assert config_file(test, "other.yaml") == tmp_path / "other.yaml"
    (below / "other.yaml").touch()
    assert config_file(test, "other.yaml") == below / "other.yaml"
    with pytest.raises(Misuse, match=r"third\.yaml or "):
        config_file(test, "third.yaml")
