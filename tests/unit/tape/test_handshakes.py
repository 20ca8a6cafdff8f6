import asyncio
import json
from collections.abc import Callable

import pytest

from flakestorm.core.call import Call, Reply, header
from flakestorm.core.pipeline import adrive, drive
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.tape.handshakes import Handshakes

ID = "Mcp-Session-Id"


def call(name: str, *, url: str = "stdio://w", lane: str = "1", session: str = "", method: str = "") -> Call:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name}).encode()
    headers = ((ID, session), ("last-event-id", "7")) if session else ()
    method = method or ("CALL" if url.startswith("stdio") else "POST")
    return Call(method, url, headers, body, kind="mcp", name=name, lane=lane, site=Site("mcp", name, 1))


class World:
    """Notes what went out, and gives new sessions."""

    def __init__(self, status: int = 200) -> None:
        self.asked: list[Call] = []
        self.status = status

    def __call__(self, call: Call) -> Reply:
        self.asked.append(call)
        given = ((ID, f"new-{len(self.asked)}"),) if call.name == "initialize" and call.method == "POST" else ()
        return Reply(self.status, given, b"{}")

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.asked]


def go(handshakes: Handshakes, world: Callable[[Call], Reply], call: Call) -> Reply:
    return drive(handshakes.stage(call), world, lambda _: None)


def begun(**place: str) -> Handshakes:
    """A session that the tape began."""
    handshakes = Handshakes()
    session = place.pop("session", "")
    handshakes.served(call("initialize", **place), ((ID, session),) if session else ())
    handshakes.served(call("notifications/initialized", session=session, **place), ())
    return handshakes


def test_the_first_live_call_on_a_pipe_is_preceded_by_the_handshake() -> None:
    handshakes, world = begun(), World()
    for name in ("pay", "echo"):
        go(handshakes, world, call(name))
    assert world.names == ["initialize", "notifications/initialized", "pay", "echo"]
    assert [each.site is None for each in world.asked] == [True, True, False, False]


def test_another_pipe_and_a_session_that_was_begun_live_need_none() -> None:
    handshakes, world = begun(), World()
    go(handshakes, world, call("pay", lane="2"))
    go(handshakes, world, call("pay", url="stdio://other"))
    go(handshakes, world, call("initialize"))
    go(handshakes, world, call("pay"))
    assert world.names == ["pay", "pay", "initialize", "pay"]


def test_what_the_agent_has_not_said_yet_is_left_to_it() -> None:
    handshakes, world = Handshakes(), World()
    handshakes.served(call("initialize"), ())
    go(handshakes, world, call("notifications/initialized"))
    assert world.names == ["initialize", "notifications/initialized"]


def test_over_http_the_recorded_id_becomes_the_new_one() -> None:
    handshakes, world = begun(url="http://h/mcp", session="old"), World()
    for method in ("POST", "GET", "DELETE"):
        go(handshakes, world, call("pay", url="http://h/mcp", session="old", method=method))
    assert world.names == ["initialize", "notifications/initialized", "pay", "pay", "pay"]
    assert [header(each.headers, ID) for each in world.asked] == [None, *["new-1"] * 4]
    assert [header(each.headers, "last-event-id") for each in world.asked] == [None] * 5


def test_a_server_without_sessions_needs_none() -> None:
    handshakes, world = Handshakes(), World()
    handshakes.served(call("initialize", url="http://h/mcp"), ())
    go(handshakes, world, call("pay", url="http://h/mcp"))
    assert world.names == ["pay"]


def test_a_server_that_refuses_is_told_of_and_asked_again_the_next_time() -> None:
    handshakes, world = begun(url="http://h/mcp", session="old"), World(503)
    for _ in range(2):
        with pytest.raises(CallFailed, match="answers 503 to its initialize"):
            go(handshakes, world, call("pay", url="http://h/mcp", session="old"))
    assert world.names == ["initialize", "initialize"]


async def test_calls_at_the_same_time_wait_for_one_handshake() -> None:
    handshakes, world = begun(), World()
    shaken = asyncio.Event()

    async def send(call: Call) -> Reply:
        if call.name == "initialize":
            await shaken.wait()
        return world(call)

    async def sleep(_: float) -> None:
        shaken.set()  # somebody waits
        await asyncio.sleep(0)

    await asyncio.gather(*(adrive(handshakes.stage(call(name)), send, sleep) for name in ("pay", "echo")))
    assert world.names[:2] == ["initialize", "notifications/initialized"]
    assert sorted(world.names[2:]) == ["echo", "pay"]
