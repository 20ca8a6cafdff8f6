from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from faults_support import World, llm_fault
from flakestorm.core.call import Reply
from flakestorm.faults.base import llm_faults
from flakestorm.wire.frames import frames
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.streaming import media_type
from model_replies import WIRES, call_of, reply_of

STATUS = {"rate_limit": 429, "overloaded": 503, "server_error": 500}
each_mode = pytest.mark.parametrize("mode", STATUS)
each_wire = pytest.mark.parametrize("wire", WIRES)
each_form = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def parts(wire: str, reply: Reply, body: bytes) -> list[bytes]:
    """The frames of a streamed body that say something."""
    spoken = wire_of(wire)
    assert spoken is not None
    framer = spoken.framing(body[:64], media_type(reply))
    assert framer is not None
    return [frame.raw for frame in frames(framer, body) if frame.data is not None]


def test_every_mode_is_registered() -> None:
    assert set(STATUS) <= set(llm_faults)


@each_form
@each_wire
@each_mode
def test_the_provider_s_own_error_comes_in_the_model_s_place(mode: str, wire: str, stream: bool) -> None:
    world, fired = World(), list[str]()
    reply, body = world.read(llm_fault(fired, mode, message="so it is"), call_of(wire, stream=stream))
    status = 529 if (mode, wire) == ("overloaded", "anthropic") else STATUS[mode]
    assert (reply.status, reply.streamed, world.asked) == (status, False, [])
    assert b"so it is" in body
    spoken = wire_of(wire)
    assert spoken is not None
    assert spoken.said(body, stream=stream).error == "so it is"
    assert fired == [f"{status}, retry after 50 ms" if mode == "rate_limit" else str(status)]


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", "ollama"])
@pytest.mark.parametrize(
    ("mode", "settings", "wait"),
    [
        ("rate_limit", {}, "50"),
        ("rate_limit", {"retry_after_ms": 7}, "7"),
        ("overloaded", {"retry_after_ms": 7}, "7"),
        ("overloaded", {}, None),
        ("server_error", {}, None),
    ],
)
def test_how_long_to_wait_is_said_only_where_it_is_known(
    mode: str, settings: dict[str, int], wait: str | None, wire: str
) -> None:
    reply = World().cross(llm_fault([], mode, **settings), call_of(wire))
    assert dict(reply.headers).get("retry-after-ms") == wait


def test_another_status_may_be_given() -> None:
    fired: list[str] = []
    assert World().cross(llm_fault(fired, "server_error", error_code=502), call_of("openai_chat")).status == 502
    assert fired == ["502"]


@each_wire
@each_mode
@pytest.mark.parametrize("events", [0, 2])
def test_an_error_may_come_in_the_middle_of_a_stream(mode: str, wire: str, events: int) -> None:
    world, fired = World(reply_of(wire, stream=True)), list[str]()
    fault = llm_fault(fired, mode, after_events=events, message="so it is")
    reply, body = world.read(fault, call_of(wire, stream=True))
    whole = b"".join(world.answer.body)  # type: ignore[union-attr]
    came = parts(wire, reply, body)
    assert (reply.status, len(world.asked), len(came)) == (200, 1, events + 1)
    assert came[:-1] == parts(wire, reply, whole)[:events]
    spoken = wire_of(wire)
    assert spoken is not None
    said = spoken.said(body, stream=True)
    assert (said.error, said.complete) == ("so it is", False)
    assert fired == [f"{mode} after {events} events"]


def test_the_error_of_a_response_has_the_next_number() -> None:
    world = World(reply_of("openai_responses", stream=True))
    fault = llm_fault([], "server_error", after_events=4)
    reply, body = world.read(fault, call_of("openai_responses", stream=True))
    numbers = [
        orjson.loads(part.partition(b"data: ")[2])["sequence_number"] for part in parts("openai_responses", reply, body)
    ]
    assert numbers == [0, 1, 2, 3, 4]


@each_wire
def test_a_stream_that_is_over_before_has_no_middle(wire: str) -> None:
    world, fired = World(reply_of(wire, stream=True)), list[str]()
    _, body = world.read(llm_fault(fired, "overloaded", after_events=500), call_of(wire, stream=True))
    assert (body, fired) == (b"".join(world.answer.body), [])  # type: ignore[union-attr]


@each_wire
def test_nor_has_a_whole_reply(wire: str) -> None:
    world, fired = World(reply_of(wire)), list[str]()
    _, body = world.read(llm_fault(fired, "overloaded", after_events=0), call_of(wire))
    assert (body, fired) == (world.answer.body, [])  # type: ignore[union-attr]


def test_nor_a_stream_whose_errors_nobody_has_seen() -> None:
    elements = [b'[{"candidates":[]}', b'\n,{"candidates":[]}', b"\n]"]
    world, fired = World(Reply(200, (("content-type", "application/json"),), elements)), list[str]()
    call = call_of("gemini", stream=True)
    array = replace(call, url=call.url.removesuffix("?alt=sse"))
    _, body = world.read(llm_fault(fired, "overloaded", after_events=1), array)
    assert (body, fired) == (b"".join(elements), [])


@each_mode
def test_what_no_wire_understands_passes_untouched(mode: str) -> None:
    world, fired = World(reply_of("openai_chat")), list[str]()
    assert world.cross(llm_fault(fired, mode), replace(call_of("openai_chat"), wire="")) is world.answer
    assert fired == []
