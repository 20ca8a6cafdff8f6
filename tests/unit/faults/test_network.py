from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from faults_support import JSON, World, scene, stream, tool_call
from flakestorm.config.model import ToolFault
from flakestorm.core.call import PULL, Call, Chunks, Reply
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.site import Site
from flakestorm.core.stream import pump
from flakestorm.errors import CallFailed, TapeError
from flakestorm.faults.base import tool_faults
from flakestorm.faults.network import connection_reset, duplicate, flap, timeout_after_commit

IDLE: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    IDLE.clear()


def fault(fired: list[str], mode: str, *, n: int = 1, **settings: object) -> Interceptor:
    at = replace(scene(fired, Site("tool", "pay", n)), idle=IDLE.append)
    return tool_faults.get(mode)(ToolFault(mode=mode, **settings), at)  # type: ignore[arg-type]


def test_the_modes_and_their_arguments() -> None:
    modes = {"connection_reset": connection_reset, "timeout_after_commit": timeout_after_commit}
    for mode, made in {**modes, "duplicate": duplicate, "flap": flap}.items():
        assert tool_faults.get(mode) is made


def test_a_reset_connection_lets_nothing_through() -> None:
    world, fired = World(), list[str]()
    with pytest.raises(CallFailed) as failure:
        world.cross(fault(fired, "connection_reset"), tool_call())
    assert (failure.value.how, failure.value.injected) == ("reset", True)
    assert (world.asked, fired) == ([], ["connection reset by peer"])


@pytest.mark.parametrize(("settings", "seconds"), [({}, 30.0), ({"delay_ms": 300}, 0.3)])
def test_a_lost_reply_was_said_once_and_heard_by_nobody(settings: dict[str, int], seconds: float) -> None:
    world, fired = World(), list[str]()
    with pytest.raises(CallFailed) as failure:
        world.cross(fault(fired, "timeout_after_commit", **settings), tool_call())
    assert (failure.value.how, failure.value.injected) == ("timeout", True)
    assert (len(world.asked), world.slept) == (1, [seconds])
    assert fired == [f"reply 200 lost after the tool ran; no answer within {seconds * 1000:.0f} ms"]


def test_the_tape_hears_the_lost_reply() -> None:
    heard: list[bytes] = []

    def note() -> Chunks:
        while (chunk := (yield PULL)) is not None:
            heard.append(chunk)
            yield chunk

    world = World(Reply(200, JSON, b"paid").pipe(note))
    with pytest.raises(CallFailed):
        world.cross(fault([], "timeout_after_commit"), tool_call())
    assert heard == [b"paid"]


def test_a_stream_falls_silent_and_is_read_to_its_end_first() -> None:
    read: list[bytes] = []

    def chunks() -> Iterator[bytes]:
        for chunk in (b"data: 1\n\n", b"data: 2\n\n"):
            read.append(chunk)
            yield chunk

    world, fired = World(replace(stream(), body=chunks())), list[str]()
    reply = world.cross(fault(fired, "timeout_after_commit", delay_ms=50), tool_call())
    assert (reply.status, fired) == (200, [])
    emitted: list[bytes] = []
    with pytest.raises(CallFailed, match="no answer within 50 ms"):
        emitted.extend(pump(reply, world.slept.append))
    assert (emitted, len(read), world.slept) == ([], 2, [0.05])
    assert len(fired) == 1


def test_a_call_that_never_reached_the_tool_is_not_lost_after_it() -> None:
    world, fired = World(CallFailed("refused")), list[str]()
    with pytest.raises(CallFailed, match="refused"):
        world.cross(fault(fired, "timeout_after_commit"), tool_call())
    assert (fired, world.slept) == ([], [])


def test_a_duplicate_is_delivered_twice_and_answered_once() -> None:
    fired = list[str]()
    answers = iter((Reply(200, JSON, b'"first"'), Reply(409, JSON, b'"second"')))
    world = World()
    world.send = lambda call: (world.asked.append(call), next(answers))[1]  # type: ignore[method-assign]
    _, body = world.read(fault(fired, "duplicate"), tool_call())
    assert body == b'"first"'
    assert world.asked[0] == world.asked[1]
    assert fired == ["request delivered twice"]


@pytest.mark.parametrize("error", [CallFailed("reset"), OSError("gone")])
def test_a_second_delivery_that_failed_is_the_worlds_affair(error: Exception) -> None:
    world, fired = World(), list[str]()

    def send(call: Call) -> Reply:
        world.asked.append(call)
        if len(world.asked) == 2:
            raise error
        return Reply(200, JSON, b"{}")

    world.send = send  # type: ignore[method-assign]
    assert world.cross(fault(fired, "duplicate"), tool_call()).status == 200
    assert fired == []


def test_a_tape_that_does_not_know_the_second_delivery_is_heard() -> None:
    world = World()

    def send(call: Call) -> Reply:
        world.asked.append(call)
        if len(world.asked) == 2:
            raise TapeError("no such call")
        return Reply()

    world.send = send  # type: ignore[method-assign]
    with pytest.raises(TapeError):
        world.cross(fault([], "duplicate"), tool_call())


def test_a_body_that_is_gone_cannot_be_sent_twice() -> None:
    world, fired = World(), list[str]()
    world.cross(fault(fired, "duplicate"), tool_call(upload=object()))
    assert (len(world.asked), fired) == (1, [])
    assert "streamed by the agent" in IDLE[0]


def test_over_mcp_the_copy_has_an_id_of_its_own_and_goes_first() -> None:
    body = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","arguments":{"n":1}}}'
    call = Call("POST", "http://x.test/mcp", JSON, body, kind="mcp", name="pay", wire="mcp", site=Site("mcp", "pay", 1))
    world, fired = World(), list[str]()
    world.cross(fault(fired, "duplicate"), call)
    copy, own = world.asked
    assert own == call
    assert json.loads(copy.body) == {**json.loads(body), "id": "7-again"}
    assert fired == ["request delivered twice"]


def test_a_notification_is_delivered_twice_as_it_is() -> None:
    body = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    call = Call("POST", "http://x.test/mcp", JSON, body, kind="mcp", name="n", wire="mcp", site=Site("mcp", "n", 1))
    world = World()
    world.cross(fault([], "duplicate"), call)
    assert world.asked == [call, call]


def test_a_flapping_tool_fails_at_every_other_call() -> None:
    world, fired = World(), list[str]()
    replies = [world.cross(fault(fired, "flap", n=n), tool_call("pay", n)).status for n in (1, 2, 3, 4)]
    assert replies == [503, 200, 503, 200]
    assert len(world.asked) == 2
    assert fired == ["503 Service Unavailable"] * 2
    assert IDLE == ["it is up at every second call"] * 2


def test_it_fails_as_it_is_told() -> None:
    fired = list[str]()
    reply, body = World().read(fault(fired, "flap", error_code=429, message="slow down"), tool_call())
    assert (reply.status, json.loads(body), fired) == (429, {"error": "slow down"}, ["429 slow down"])
