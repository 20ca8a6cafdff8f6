from __future__ import annotations

import sys
from types import ModuleType

import pytest

from flakestorm.boundary.census import IN_PROCESS, OUTSIDE, led, unseen
from flakestorm.boundary.hub import Hub
from flakestorm.boundary.inprocess import LIBRARIES
from flakestorm.boundary.passage import Passage
from flakestorm.core.pipeline import chain


def test_every_library_that_is_held_has_a_line() -> None:
    assert {name.partition(".")[0] for name in LIBRARIES} <= set(IN_PROCESS)
    assert not set(IN_PROCESS) & set(OUTSIDE)


def test_a_variable_is_shown_with_its_upstream_and_without_secrets() -> None:
    passage = Passage("T", {"openai": "https://api.test", "openai1": "https://other.test"})
    env = {
        "OPENAI_BASE_URL": "http://me:secretsecret@127.0.0.1:1/r/T/p/openai/v1?api_key=secretsecret",
        "OPENAI_API_BASE": "http://127.0.0.1:1/r/T/p/openai1",
        "HTTP_PROXY": "http://x:T@127.0.0.1:1",
    }
    assert led(env, passage) == {
        "OPENAI_BASE_URL": "https://api.test/v1?api_key=[redacted]",
        "OPENAI_API_BASE": "https://other.test",
    }


def test_clients_without_a_seam_are_known_when_they_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets", ModuleType("websockets"))
    assert "websockets" in unseen()


async def test_a_hub_counts_over_all_its_lines_and_channels() -> None:
    hub = Hub(environ={"OPENAI_BASE_URL": "https://api.test/v1"})
    for run in ("r-1", "r-2"):
        hub.line(run, chain()).lane("httpx")
    channel = await hub.channel({})
    with channel.bind(hub.line("r-3", chain())):
        channel.passage.lane("connection", "shim")
    census = hub.census()
    await hub.close()
    assert (census.seams["httpx"], census.seams["shim"], census.seams["aiohttp"], census.gateway) == (2, 1, 0, "")
    assert set(census.seams) == {*IN_PROCESS, *OUTSIDE}
    assert census.variables["OPENAI_BASE_URL"] == "https://api.test/v1"
