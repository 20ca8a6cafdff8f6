"""Streams arrive as they are sent: the second word leaves the upstream only once the agent has had the first."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from flakestorm.boundary import inprocess
from flakestorm.boundary.session import Crossing
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain
from flakestorm.core.site import Sites
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify
from frameworks_support import CHAT, GEMINI_STREAM, OLLAMA_CHAT, PROGRAMS, gemini_stream, ollama_stream
from upstream import Canned, Gate, Upstream, openai_stream

WORDS = ["Three", " flights", " to", " Oslo."]


def _openai(gate: Gate) -> Canned:
    return openai_stream(WORDS, gates={2: gate})


STREAMS: dict[str, tuple[str, Callable[[Gate], Canned]]] = {
    "langchain_agent": (CHAT, _openai),
    "langgraph_agent": (CHAT, _openai),
    "pydantic_ai_agent": (CHAT, _openai),
    "openai_agents_agent": (CHAT, _openai),
    "litellm_agent": (CHAT, _openai),
    "ollama_agent": (OLLAMA_CHAT, lambda gate: ollama_stream(WORDS, gate=gate)),
    "google_genai_agent": (GEMINI_STREAM, lambda gate: gemini_stream(WORDS, gate=gate)),
}


@contextmanager
def program(name: str, url: str) -> Iterator[Any]:
    """A module of `programs` for this upstream."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UPSTREAM_URL", url)
        patch.syspath_prepend(str(PROGRAMS))
        own = {path.stem for path in PROGRAMS.glob("*.py")}
        try:
            yield importlib.import_module(name)
        finally:
            for module in own & set(sys.modules):
                del sys.modules[module]


@pytest.mark.parametrize("name", STREAMS)
def test_words_arrive_as_they_are_sent(name: str) -> None:
    path, script = STREAMS[name]
    gate, ledger = Gate(), Ledger()
    recorder = Recorder(None, clock=lambda: 0.0, ledger=ledger, header={})
    line = Crossing("r-0001", chain(classify(tools=(), sites=Sites()), recorder.outer, recorder.inner))
    words: list[str] = []

    async def listen(agent: Any) -> None:
        with line.active():
            async for word in agent.stream("a flight to Oslo"):
                words.append(word)
                gate.open()  # a boundary that held the stream back would wait for this in vain

    with Upstream() as up, program(name, up.url) as agent, inprocess.held():
        up.reply(path, script(gate))
        asyncio.run(listen(agent))
        assert up.count(path) == 1
    assert "".join(words) == "".join(WORDS)
    (exchange,) = recorder.exchanges
    assert (exchange.reply.status, exchange.reply.stream, exchange.reply.end) == (200, True, "eof")
    assert len(exchange.reply.chunks) >= len(WORDS)
    assert json.loads(exchange.body)
