from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults_support import World, llm_fault
from flakestorm.core.call import Reply
from flakestorm.core.stream import pump
from flakestorm.errors import CallFailed
from flakestorm.faults.base import llm_faults
from flakestorm.wire.streaming import counted
from model_replies import WIRES, call_of, reply_of
from wire_support import chunked

MODES = ("stream_cut", "slow_stream")
each_wire = pytest.mark.parametrize("wire", WIRES)


def events(reply: Reply) -> list[bytes]:
    """The frames of a scripted reply, one each."""
    assert isinstance(reply.body, list)
    return reply.body


def cut(wire: str, reply: Reply, after: int, fired: list[str]) -> tuple[bytes, CallFailed | None]:
    """What arrives before the cut, and the cut."""
    world, came = World(reply), list[bytes]()
    out = world.cross(llm_fault(fired, "stream_cut", after_events=after), call_of(wire, stream=True))
    try:
        came.extend(pump(out, world.slept.append))
    except CallFailed as failure:
        return b"".join(came), failure
    return b"".join(came), None


def test_every_mode_is_registered() -> None:
    assert set(MODES) <= set(llm_faults)


@each_wire
@given(data=st.data())
@settings(max_examples=30)
def test_so_many_events_arrive_and_then_the_connection_breaks(wire: str, data: st.DataObject) -> None:
    whole = events(reply_of(wire, stream=True))
    after = data.draw(st.integers(0, len(whole) - 1))
    sizes = data.draw(st.lists(st.integers(1, 400), min_size=1, max_size=5))
    fired: list[str] = []
    chunks = list(chunked(b"".join(whole), *sizes))
    body, failure = cut(wire, replace(reply_of(wire, stream=True), body=chunks), after, fired)
    assert body == b"".join(whole[:after])
    assert failure is not None
    assert (failure.how, failure.injected) == ("reset", True)
    assert fired == [f"cut after {counted(after)}"]


@each_wire
@pytest.mark.parametrize("more", [0, 1, 99])
def test_a_stream_with_no_more_events_than_that_ends_as_it_would(wire: str, more: int) -> None:
    fired, reply = list[str](), reply_of(wire, stream=True)
    assert cut(wire, reply, len(events(reply)) + more, fired) == (b"".join(events(reply)), None)
    assert fired == []


def test_three_events_by_default() -> None:
    world = World(reply_of("anthropic", stream=True))
    came: list[bytes] = []
    with pytest.raises(CallFailed):
        came.extend(
            pump(world.cross(llm_fault([], "stream_cut"), call_of("anthropic", stream=True)), world.slept.append)
        )
    assert b"".join(came) == b"".join(events(reply_of("anthropic", stream=True))[:3])


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_an_event_that_ends_in_crlf_arrives_with_both_halves_of_it(size: int) -> None:
    body = b"data: {}\r\n\r\ndata: {}\r\n\r\ndata: {}\r\n\r\n"
    reply = Reply(200, (("content-type", "text/event-stream"),), list(chunked(body, size)))
    came, failure = cut("gemini", reply, 2, [])
    assert (came, failure is not None) == (b"data: {}\r\n\r\ndata: {}\r\n\r\n", True)
    assert cut("gemini", reply, 3, []) == (body, None)


def test_the_cut_waits_for_nothing_but_the_first_byte_of_the_next_event() -> None:
    sent = [b"data: 1\n\n", b"da", b"ta: 2\n\n"]
    asked: list[bytes] = []

    def source() -> Iterator[bytes]:
        for chunk in sent:
            asked.append(chunk)
            yield chunk

    reply = Reply(200, (("content-type", "text/event-stream"),), source())
    body, failure = cut("openai_chat", reply, 1, [])
    assert (body, failure is not None, asked) == (b"data: 1\n\n", True, sent[:2])


def test_a_break_of_the_world_s_own_is_passed_on() -> None:
    def source() -> Iterator[bytes]:
        yield b"data: 1\n\nda"
        raise CallFailed("reset", "the world")

    reply, fired = Reply(200, (("content-type", "text/event-stream"),), source()), list[str]()
    body, failure = cut("openai_chat", reply, 9, fired)
    assert (body, str(failure), fired) == (b"data: 1\n\nda", "reset: the world", [])


@each_wire
@given(data=st.data())
@settings(max_examples=30)
def test_a_slow_stream_is_the_same_bytes_later(wire: str, data: st.DataObject) -> None:
    whole = events(reply_of(wire, stream=True))
    sizes = data.draw(st.lists(st.integers(1, 400), min_size=1, max_size=5))
    fired: list[str] = []
    world = World(replace(reply_of(wire, stream=True), body=list(chunked(b"".join(whole), *sizes))))
    fault = llm_fault(fired, "slow_stream", first_token_ms=700, per_chunk_ms=30)
    _, body = world.read(fault, call_of(wire, stream=True))
    assert body == b"".join(whole)
    assert world.slept == [0.7] + [0.03] * (len(whole) - 1)
    assert fired == ["first event 700 ms late, 30 ms between events"] * len(whole)


def test_each_event_is_let_out_when_its_time_has_come() -> None:
    world = World(reply_of("openai_chat", stream=True))
    out = world.cross(llm_fault([], "slow_stream"), call_of("openai_chat", stream=True))
    log: list[object] = []
    for chunk in pump(out, log.append):
        log.append(chunk)
    said = events(reply_of("openai_chat", stream=True))
    assert log == [2.0, said[0], *(step for event in said[1:] for step in (0.1, event))]


@pytest.mark.parametrize(
    "settings", [{"first_token_ms": 0, "per_chunk_ms": 5}, {"first_token_ms": 5, "per_chunk_ms": 0}]
)
def test_either_delay_alone_will_do(settings: dict[str, int]) -> None:
    world, fired = World(reply_of("anthropic", stream=True)), list[str]()
    world.read(llm_fault(fired, "slow_stream", **settings), call_of("anthropic", stream=True))
    assert len(fired) == len(world.slept) == (1 if settings["first_token_ms"] else len(events(world.answer)) - 1)  # type: ignore[arg-type]


def test_without_any_delay_nothing_fires() -> None:
    world, fired = World(reply_of("anthropic", stream=True)), list[str]()
    world.read(llm_fault(fired, "slow_stream", first_token_ms=0, per_chunk_ms=0), call_of("anthropic", stream=True))
    assert (fired, world.slept) == ([], [])


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_compressed_bytes_are_slowed_as_they_come(coding: str) -> None:
    packed = gzip.compress(b"".join(events(reply_of("anthropic", stream=True))))
    headers = (("content-type", "text/event-stream"), ("content-encoding", coding))
    world, fired = World(Reply(200, headers, list(chunked(packed, 40)))), list[str]()
    reply, body = world.read(llm_fault(fired, "slow_stream"), call_of("anthropic", stream=True))
    assert (body, reply.headers) == (packed, headers)
    assert len(world.slept) == -(-len(packed) // 40)


def test_a_compressed_stream_is_unpacked_to_be_cut_where_that_is_possible() -> None:
    whole = events(reply_of("anthropic", stream=True))
    packed = Reply(
        200,
        (("content-type", "text/event-stream"), ("content-encoding", "gzip")),
        [gzip.compress(b"".join(whole))],
    )
    body, failure = cut("anthropic", packed, 2, [])
    assert (body, failure is not None) == (b"".join(whole[:2]), True)
    unknown = replace(packed, headers=(packed.headers[0], ("content-encoding", "br")))
    assert cut("anthropic", unknown, 2, [])[1] is None


@pytest.mark.parametrize("mode", MODES)
@each_wire
def test_a_whole_reply_is_left_alone(wire: str, mode: str) -> None:
    world, fired = World(reply_of(wire)), list[str]()
    _, body = world.read(llm_fault(fired, mode), call_of(wire))
    assert (body, fired, world.slept) == (world.answer.body, [], [])  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", MODES)
def test_an_error_and_what_no_wire_understands_are_left_alone(mode: str) -> None:
    for reply, call in (
        (replace(reply_of("anthropic", stream=True), status=529), call_of("anthropic")),
        (reply_of("anthropic", stream=True), replace(call_of("anthropic"), wire="")),
    ):
        world = World(reply)
        assert world.cross(llm_fault([], mode), call) is world.answer


@pytest.mark.parametrize("mode", MODES)
def test_the_elements_of_gemini_s_array_are_events_too(mode: str) -> None:
    body = b'[{"candidates":[]}\n,{"candidates":[]}\n,{"candidates":[]}\n]'
    reply, fired = Reply(200, (("content-type", "application/json"),), [body]), list[str]()
    if mode == "stream_cut":
        assert cut("gemini", reply, 2, fired)[0] == b'[{"candidates":[]}\n,{"candidates":[]}'
    else:
        world = World(reply)
        assert world.read(llm_fault(fired, mode), call_of("gemini", stream=True))[1] == body
        assert world.slept == [2.0, 0.1, 0.1]
    assert fired
