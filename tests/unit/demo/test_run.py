from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from flakestorm.config.model import Config
from flakestorm.demo import run
from flakestorm.errors import MissingExtra


def test_serve_brings_up_what_the_config_refers_to(tmp_path: Path) -> None:
    with run.serve(reports=tmp_path) as env:
        assert set(re.findall(r"\$\{(\w+)\}", run.CONFIG.read_text())) == env.keys()
        with urlopen(f"{env['FLAKESTORM_DEMO_MODEL_URL']}/models") as reply:
            assert json.load(reply)["data"][0]["id"] == "scripted"
        with urlopen(f"{env['FLAKESTORM_DEMO_TOOLS_URL']}/counts") as reply:
            assert json.load(reply) == {"bookings": 0}
        assert env["FLAKESTORM_DEMO_PYTHON"] == sys.executable
        assert env["FLAKESTORM_DEMO_REPORTS"] == str(tmp_path)


def test_reports_go_to_the_current_directory_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with run.serve() as env:
        assert env["FLAKESTORM_DEMO_REPORTS"] == str(tmp_path / "reports")


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"the demo needs the extra 'demo': pip install 'flakestorm\[demo\]'"):
        run.serve().__enter__()


@pytest.fixture
def config() -> Config:
    raw: Any = yaml.safe_load(run.CONFIG.read_text(encoding="utf-8"))
    return Config.of(raw)


def test_the_config_is_valid_and_has_the_promised_shape(config: Config) -> None:
    assert config.contract is not None
    assert [s.name for s in config.contract.chaos_matrix] == [
        "no-chaos",
        "search-down",
        "booking-times-out",
        "model-rate-limited",
        "model-cut-short",
    ]
    assert not config.contract.chaos_matrix[0].chaos  # the control
    assert all(s.chaos for s in config.contract.chaos_matrix[1:])
    assert len(config.contract.invariants) == 4
    assert 2 <= len(config.golden_prompts) <= 3


def test_the_agents_tools_are_named_by_the_config(config: Config) -> None:
    named = set(config.boundary.tools)
    assert config.contract is not None
    assert {f.tool for s in config.contract.chaos_matrix for f in s.tool_faults} <= named
    assert {i.tool for i in config.contract.invariants if i.tool} <= named
