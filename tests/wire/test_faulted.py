"""Recorded replies under every model fault: still read, whatever the chunking, and never a byte that depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults_support import World, llm_fault
from flakestorm.core.call import Reply
from flakestorm.core.site import Site
from flakestorm.core.stream import pump
from flakestorm.errors import CallFailed
from flakestorm.wire.base import Said
from flakestorm.wire.frames import frames
from flakestorm.wire.streaming import media_type
from model_replies import PAY, call_of, reply_of
from wire_support import DATA, Recorded, chunked, recorded

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")

MODES: dict[str, dict[str, Any]] = {
    "truncated_response": {"max_tokens": 5},
    "empty": {},
    "garbage": {},
    "refusal": {},
    "content_filter": {"form": "answer"},
    "bad_tool_call": {},
    "response_drift": {"drift_type": "tone_shift"},
    "slow_stream": {},
    "stream_cut": {"after_events": 2},
    "overloaded": {"after_events": 2},
}
BREAKING = ("stream_cut", "overloaded")
each_mode = pytest.mark.parametrize("mode", MODES)


def usable(exchange: Recorded) -> bool:
    """Whether it is one answer that ended well; hand-made streams of several messages are not."""
    starts = exchange.body.count(b"event: message_start") + exchange.body.count(b"event: response.created")
    said = exchange.wire.said(exchange.body, stream=exchange.stream)
    return exchange.status == 200 and said.complete and said.error is None and starts < 2


EXCHANGES = [exchange for exchange in recorded() if usable(exchange)]
STREAMS = [each for each in EXCHANGES if each.stream and len(each.body) < 60_000 and each.edits]
NAMES = sorted({exchange.wire.name for exchange in STREAMS})


def crossed(mode: str, exchange: Recorded, body: bytes | Sequence[bytes]) -> tuple[bytes, Said, list[str], bool]:
    """What the agent gets, what that says, what fired, and whether the connection broke."""
    fired, came, broke = list[str](), list[bytes](), False
    world = World(replace(exchange.reply, body=body))
    call = replace(exchange.call, kind="llm", name="m", wire=exchange.wire.name, site=Site("llm", "m", 1))
    reply = world.cross(llm_fault(fired, mode, **MODES[mode]), call)
    try:
        came.extend(pump(reply, world.slept.append))
    except CallFailed:
        broke = True
    data = b"".join(came)
    return data, exchange.wire.said(data, stream=exchange.stream), fired, broke


@each_mode
def test_what_is_left_of_a_recorded_reply_is_one(mode: str) -> None:
    hit = 0
    for exchange in EXCHANGES:
        body, said, fired, broke = crossed(mode, exchange, exchange.body)
        hit += bool(fired)
        if not fired or mode == "slow_stream":
            assert (body, broke) == (exchange.body, False), exchange.id
            continue
        if mode in BREAKING:
            assert exchange.stream or exchange.body.startswith(b"["), exchange.id
            assert not said.complete, exchange.id
            assert (said.error is not None, broke) == (mode == "overloaded", mode == "stream_cut"), exchange.id
        else:
            assert said.complete, exchange.id
            assert (said.error, broke) == (None, False), exchange.id
    assert hit > 20


@each_mode
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=15)
def test_chunking_changes_nothing(name: str, mode: str, data: st.DataObject) -> None:
    exchange = data.draw(st.sampled_from([each for each in STREAMS if each.wire.name == name]))
    sizes = data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=6))
    assert crossed(mode, exchange, list(chunked(exchange.body, *sizes))) == crossed(mode, exchange, exchange.body)


@each_mode
@given(data=st.data())
@settings(max_examples=25)
def test_nor_does_it_in_ollama_s_lines(mode: str, data: st.DataObject) -> None:
    whole = reply_of("ollama", calls=[PAY], stream=True, size=data.draw(st.integers(1, 20)))
    lines = b"".join(whole.body)  # type: ignore[arg-type]
    sizes = data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=6))

    def out(body: Sequence[bytes]) -> tuple[bytes, list[str]]:
        fired, came, world = list[str](), list[bytes](), World(Reply(200, whole.headers, list(body)))
        try:
            came.extend(pump(world.cross(llm_fault(fired, mode, **MODES[mode]), call_of("ollama")), world.slept.append))
        except CallFailed:
            fired.append("broken")
        return b"".join(came), fired

    assert out(list(chunked(lines, *sizes))) == out([lines])


@pytest.mark.parametrize("mode", BREAKING)
def test_exactly_so_many_events_of_the_world_s_arrive(mode: str) -> None:
    for exchange in STREAMS:
        body, _, fired, _ = crossed(mode, exchange, exchange.body)
        came, sent = said(exchange, body), said(exchange, exchange.body)
        assert bool(fired) is (len(sent) > 2), exchange.id
        assert came[:2] == sent[:2], exchange.id
        assert len(came) == (len(sent) if not fired else 3 if mode == "overloaded" else 2), exchange.id


def said(exchange: Recorded, body: bytes) -> list[bytes]:
    """What the events of a stream say."""
    framer = exchange.wire.framing(exchange.body[:64], media_type(exchange.reply))
    assert framer is not None
    return [frame.data for frame in frames(framer, body) if frame.data is not None]
