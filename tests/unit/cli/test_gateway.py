"""What the command refuses before it serves; that it serves is shown in tests/e2e/test_gateway.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from flakestorm.cli.gateway import _order, _print
from flakestorm.cli.options import Globals
from flakestorm.errors import ConfigError, Misuse
from unit_cli import run

CONFIG = """
version: "2.0"
agent: {endpoint: http://127.0.0.1:1}
golden_prompts: [a]
advanced: {seed: 7}
boundary: {tools: {search: "*/search"}}
chaos: {tool_faults: [{tool: pay, match_url: "*/pay", mode: error}]}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_config_everything_passes() -> None:
    order = _order(Globals(), False, None, ())
    assert (order.tools, order.schedule.planned) == ([], ())


def test_the_config_names_tools_and_seed_and_its_chaos_is_played_when_asked_for(folder: Path) -> None:
    (folder / "flakestorm.yaml").write_text(CONFIG)
    order = _order(Globals(), False, None, ())
    assert (order.tools, order.schedule.planned, order.seed) == ([("search", "*/search"), ("pay", "*/pay")], (), 7)
    assert _order(Globals(seed=1), True, None, ()).schedule.describe() == ("tool/pay=error,match_url=*/pay",)
    assert _order(Globals(seed=1), True, None, ()).seed == 1
    assert len(_order(Globals(), False, "api_outage", ()).schedule.planned) == 2
    assert _order(Globals(), False, None, ("llm/x#1=empty",)).schedule.describe() == ("llm/x#1=empty",)


def test_faults_are_given_in_one_way() -> None:
    with pytest.raises(Misuse, match="one of them"):
        _order(Globals(), False, "api_outage", ("llm/x#1=empty",))
    with pytest.raises(ConfigError, match="no chaos to play"):
        _order(Globals(), True, None, ())


def test_a_config_that_was_named_must_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gateway", "-c", "missing.yaml") == 2
    assert "missing.yaml" in capsys.readouterr().err


def test_one_line_for_each_variable(capsys: pytest.CaptureFixture[str]) -> None:
    _print({"A": "http://x", "B": ""})
    assert capsys.readouterr().out == "A=http://x\nB=\n"
