from pathlib import Path

import pytest

from flakestorm.api import Options, load
from flakestorm.api.carrying import hub_of
from flakestorm.api.outfit import Outfit, outfit_of
from flakestorm.config.model import Scenario, ToolFault
from flakestorm.engine.budget import Budget, Limits
from flakestorm.engine.pacing import Pacing
from flakestorm.engine.runner import Runner
from flakestorm.errors import ConfigError
from flakestorm.executors.away import AwayRunner
from flakestorm.executors.world import LocalWorld

CONFIG = """
version: "2.0"
agent: {type: python, endpoint: "agent:answer"}
golden_prompts: [hello]
invariants: [{type: output_not_empty}]
boundary: {tools: {search: "http://*/search"}%s}
"""


def outfit(folder: Path, options: Options, more: str = "") -> Outfit:
    (folder / "flakestorm.yaml").write_text(CONFIG % more)
    project = load(folder / "flakestorm.yaml")
    scenario = Scenario(name="down", tool_faults=[ToolFault(mode="error", tool="pay", match_url="*/pay")])
    return outfit_of(project, iter([scenario]), options, 7, LocalWorld(folder / "tapes"), hub_of(project.config))


def test_it_follows_from_the_project_and_the_options(tmp_path: Path) -> None:
    budget = Budget(Limits(), lambda: 0.0)
    made = outfit(tmp_path, Options(budget=budget))
    assert (made["seed"], made["budget"]) == (7, budget)
    assert dict(made["tools"])["search"] == "http://*/search"
    assert isinstance(made["pacing"], Pacing)
    one, other = made["redaction"](), made["redaction"]()
    assert one is not other


def test_a_pace_that_was_given_is_kept(tmp_path: Path) -> None:
    pacing = Pacing(lambda: 0.0, None)
    assert outfit(tmp_path, Options(pacing=pacing))["pacing"] is pacing


def test_both_kinds_of_runner_take_all_of_it() -> None:
    for kind in (Runner, AwayRunner):
        assert set(Outfit.__annotations__) < set(kind.__struct_fields__)


def test_what_is_secret_is_understood_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="redact"):
        outfit(tmp_path, Options(), ', redact: ["("]')
