from __future__ import annotations

import json

import pytest

from faults_support import World
from flakestorm.core.call import Call
from flakestorm.core.site import Site
from flakestorm.faults.sessions import Sessions

ASKED = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}'
BEGIN = b'{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}'


def http(session: str | None = "s1", *, method: str = "POST", body: bytes = ASKED, n: int = 1) -> Call:
    headers = () if session is None else (("Mcp-Session-Id", session),)
    return Call(method, "http://x.test/mcp", headers, body, kind="mcp", name="t", wire="mcp", site=Site("mcp", "t", n))


def pipe(body: bytes = ASKED, url: str = "stdio://notes", n: int = 1, lane: str = "1") -> Call:
    return Call("CALL", url, (), body, kind="mcp", name="t", wire="mcp", site=Site("mcp", "t", n), lane=lane)


@pytest.mark.parametrize(
    "call", [http("s1"), http("s1", method="GET", body=b""), http("s1", method="DELETE", body=b"")]
)
def test_over_http_what_names_a_forgotten_session_is_answered_by_404(call: Call) -> None:
    sessions, world, again = Sessions(), World(), list[Site]()
    assert sessions.lose(http("s1"), again.append)
    reply, body = world.read(sessions.stage, call)
    assert (reply.status, reply.reason, world.asked) == (404, "Not Found", [])
    assert json.loads(body)["error"] == {"code": -32600, "message": "Session not found"}
    assert json.loads(body)["id"] == (1 if call.body else None)
    assert again == [call.site]


@pytest.mark.parametrize("call", [http("s2"), http(None), http(None, body=BEGIN), pipe()])
def test_other_sessions_and_new_ones_are_known(call: Call) -> None:
    sessions, world = Sessions(), World()
    sessions.lose(http("s1"), lambda _: None)
    assert world.cross(sessions.stage, call) is world.answer


def test_without_a_session_there_is_none_to_lose() -> None:
    sessions = Sessions()
    assert not sessions.lose(http(None), lambda _: None)
    assert not sessions.forgot(http(None))


def test_on_a_pipe_requests_are_refused_until_one_begins_anew() -> None:
    sessions, world = Sessions(), World()
    sessions.lose(pipe(), lambda _: None)
    reply, body = world.read(sessions.stage, pipe())
    assert reply.status == 200
    assert json.loads(body) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32600, "message": "Session not found"},
    }
    note = pipe(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert world.cross(sessions.stage, note).status == 202
    assert world.asked == []
    assert world.cross(sessions.stage, pipe(url="stdio://other")) is world.answer
    assert world.cross(sessions.stage, pipe(BEGIN)) is world.answer
    assert world.cross(sessions.stage, pipe()) is world.answer


def test_calls_of_other_kinds_pass() -> None:
    sessions, world = Sessions(), World()
    sessions.lose(http("s1"), lambda _: None)
    call = Call("GET", "http://x.test", (("mcp-session-id", "s1"),), kind="tool", name="t", site=Site("tool", "t", 1))
    assert world.cross(sessions.stage, call) is world.answer


def test_two_pipes_to_one_server_are_two_sessions() -> None:
    sessions, world = Sessions(), World()
    assert sessions.lose(pipe(), list[Site]().append)
    assert world.read(sessions.stage, pipe(lane="2"))[0].status == 200
    assert len(world.asked) == 1
