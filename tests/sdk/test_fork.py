"""Forks of agents on the official SDKs: sync, async, streamed and threaded, in this process."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

import flakestorm
from e2e_support import PROGRAMS, services
from flakestorm.tape.reader import Tape
from fork_support import Numbers, changing
from upstream import Upstream, anthropic_messages, openai_chat

NAMES = {"search": "*/search"}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
MODELS = {"openai": "gpt-4o", "anthropic": "claude"}
WHOLE = {"openai": openai_chat, "anthropic": anthropic_messages}
assert openai, anthropic  # imported before the first recording begins


@pytest.fixture
def up() -> Iterator[Upstream]:
    with changing(Numbers(), lambda _, told: f"on {told}") as up:
        yield up


@pytest.fixture(params=["sync", "async", "stream", "astream"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["openai", "anthropic"])
def sdk(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def talk(up: Upstream, sdk: str, how: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The agent, of one question."""
    for name, value in {"SDK": sdk, "HOW": how, **services(up)}.items():
        monkeypatch.setenv(name, value)
    spec = spec_from_file_location("forked_agent", PROGRAMS / "forked_agent.py")
    assert spec is not None
    program: Any = module_from_spec(spec)
    spec.loader.exec_module(program)  # type: ignore[union-attr]
    program.search = lambda asked: httpx.post(f"{up.url}/search", json=asked).text
    return program.atalk if how in ("async", "astream") else program.talk


@pytest.fixture
async def tape(talk: Any, tmp_path: Path) -> Path:
    path = tmp_path / "a.tape"
    with flakestorm.record(path, input="a flight to Oslo", tools=NAMES) as recording:
        recording.output = await _end(talk("a flight to Oslo"))
    return path


async def _end(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def test_another_tool_result_is_told_and_only_what_follows_is_called(
    up: Upstream, talk: Any, tape: Path, sdk: str, tmp_path: Path
) -> None:
    before = up.count(PATHS[sdk]), up.count("/search")
    forked = await _end(
        flakestorm.fork(
            tape, talk, at="tool/search#1", to=tmp_path / "b.tape", names=NAMES, reply='{"flights": "none"}'
        )
    )
    assert (forked.value, forked.error) == ('on {"flights": "none"}', None)
    assert (up.count(PATHS[sdk]), up.count("/search")) == (before[0] + 1, before[1])
    assert (forked.live, forked.environment) == ((f"llm/{MODELS[sdk]}#2",), "pure")
    streams = [[x.reply.stream for x in Tape.open(path).exchanges()] for path in (tape, forked.path)]
    assert streams[0] == streams[1]


async def test_another_answer_comes_as_the_agent_asks_for_it(
    up: Upstream, talk: Any, tape: Path, sdk: str, how: str, tmp_path: Path
) -> None:
    before = up.count()
    body = b"".join(piece for piece in WHOLE[sdk]("I give up.").pieces if isinstance(piece, bytes))
    site = f"llm/{MODELS[sdk]}#2"
    forked = await _end(flakestorm.fork(tape, talk, at=site, to=tmp_path / "b.tape", names=NAMES, reply=body))
    assert (forked.value, up.count()) == ("I give up.", before), forked.error
    assert Tape.open(forked.path).exchanges()[-1].reply.stream == ("stream" in how)


async def test_a_model_is_resampled_with_the_tools_of_the_tape(
    up: Upstream, talk: Any, tape: Path, sdk: str, tmp_path: Path
) -> None:
    said = (Tape.open(tape).footer or pytest.fail("no footer")).output
    searches = up.count("/search")
    site = f"llm/{MODELS[sdk]}#1"
    forked = await _end(flakestorm.fork(tape, talk, at=site, to=tmp_path / "b.tape", names=NAMES, tools="tape"))
    assert (forked.value, forked.environment, up.count("/search")) == (said, "pure", searches), forked.error
