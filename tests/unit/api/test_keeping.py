"""An agent that is kept between runs."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.api import load
from flakestorm.api.keeping import Kept
from flakestorm.config.model import Scenario, ToolFault
from flakestorm.core.call import Call, Reply
from flakestorm.engine.plan import BASELINE, Trial
from flakestorm.errors import ConfigError, Misuse
from plugin_support import project

TRIAL = Trial("r-1", BASELINE, 0, "a", 1, ())


def stand_in(_: Call):
    return Reply(200, (("content-type", "text/plain"),), b"stood in")
    yield


@pytest.fixture
def kept(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SEARCH_URL", "http://127.0.0.1:9/search")
    agent = Kept(load(project(tmp_path, "") / "flakestorm.yaml"), tmp_path / "tapes")
    yield agent
    agent.close()
    agent.close()


def test_runs_one_after_the_other_with_their_calls(kept, tmp_path) -> None:
    first = kept.ask(TRIAL, seed=1, within=(stand_in,), path=tmp_path / "own.tape")
    down = Scenario(name="down", tool_faults=[ToolFault(tool="search", mode="error")])
    second = kept.ask(replace(TRIAL, run="r-2", scenario=down), seed=2)
    assert first.result(60).run.output == "found stood in"
    assert [str(exchange.site) for exchange in first.result().view.exchanges] == ["tool/search#1"]
    assert [firing.mode for firing in second.result(60).run.fired] == ["error"]
    assert (tmp_path / "own.tape").is_file()
    assert (tmp_path / "tapes" / "r-2.tape").is_file()


def test_what_cannot_be_played_is_said_and_the_agent_goes_on(kept) -> None:
    wrong = Scenario(name="x", tool_faults=[ToolFault(tool="search", mode="eror")])
    with pytest.raises(Misuse, match="did you mean 'error'"):
        kept.ask(replace(TRIAL, scenario=wrong), seed=1).result(60)
    assert kept.ask(TRIAL, seed=1, within=(stand_in,)).result(60).run.error is None


def test_an_agent_that_cannot_be_had(tmp_path) -> None:
    config = project(tmp_path, "", agent="nothing_here:answer") / "flakestorm.yaml"
    before = threading.active_count()
    with pytest.raises(ConfigError, match="nothing_here"):
        Kept(load(config), tmp_path)
    assert threading.active_count() == before
