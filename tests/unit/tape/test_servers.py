import json
from collections.abc import Callable

import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow, drive
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.tape.model import Exchange
from flakestorm.tape.servers import Servers, speak_mcp
from flakestorm.tape.telling import Telling
from flakestorm.wire.mcp.protocol import OPEN
from replay_support import exchange, matcher, reply

PIPE = "stdio://w"


def said(n: int, name: str, begin_ms: float, end_ms: float, url: str = PIPE) -> Exchange:
    body = {"jsonrpc": "2.0", "id": n, "method": name}
    at = {"t_ms": begin_ms, "duration_ms": end_ms - begin_ms}
    site = Site("mcp", name, n + 1)
    return exchange(n, body, reply(), site=site, url=url, lane="1", method="CALL", wire="mcp", headers=(), **at)


def servers(*exchanges: Exchange, leaves: bool = False) -> Servers:
    return Servers(matcher(*exchanges).entries, Telling(), leaves=leaves)


def call(name: str, url: str = PIPE, method: str = "CALL", headers: tuple[tuple[str, str], ...] = ()) -> Call:
    return Call(method, url, headers, b"{}", kind="mcp", name=name, wire="mcp", lane="1")


def crossed(flow: Flow, answer: Callable[[Call], Reply]) -> tuple[Reply, list[Call]]:
    sent: list[Call] = []

    def send(made: Call) -> Reply:
        sent.append(made)
        return answer(made)

    return drive(flow, send, lambda _: None), sent


RECORDED = Reply(200, (("a", "b"),), b"recorded")


def test_a_server_speaks_before_it_answers() -> None:
    order: list[str] = []

    def recorded() -> Reply:
        order.append("answered")
        return RECORDED

    flow = servers(said(0, "pay", 0, 50), said(1, "roots/list", 10, 20, f"{PIPE}/client")).played(
        call("pay"), 0, recorded
    )
    assert flow is not None
    given, sent = crossed(flow, lambda made: order.append(made.name) or Reply(202))  # type: ignore[func-returns-value]
    assert (given, order) == (RECORDED, ["roots/list", "answered"])
    assert json.loads(sent[0].body)["method"] == "roots/list"


def test_a_recorded_failure_comes_after_what_was_said() -> None:
    played = servers(said(0, "pay", 0, 50), said(1, "roots/list", 10, 20, f"{PIPE}/client")).played
    flow = played(call("pay"), 0, lambda: CallFailed("reset", "gone"))
    assert flow is not None
    with pytest.raises(CallFailed, match="gone"):
        crossed(flow, lambda _: Reply(202))


def test_a_question_is_the_agents_to_answer() -> None:
    heard: list[Reply] = []
    tape = servers(said(0, "pay", 0, 50), said(1, "roots/list", 10, 20, f"{PIPE}/client"))
    question = call("roots/list", f"{PIPE}/client")
    flow = tape.played(question, 1, lambda: RECORDED, asks=heard.append)
    assert flow is not None
    given, sent = crossed(flow, lambda _: Reply(200, (), b"mine"))
    assert (given.body, sent, heard) == (b"mine", [question], [given])


def test_a_stream_is_held_open_where_the_tape_has_it() -> None:
    events = [b"event: endpoint\r\ndata: /r/T/p/mcp-w/messages?s=1\r\n\r\n", b"event: message\ndata: {}\n\n"]
    stream = reply(stream=True, chunks=events)
    opened = exchange(0, b"", stream, site=Site("mcp", "GET", 1), method="GET", url="http://h/sse")
    tape = servers(opened, said(1, "pay", 0, 50, "http://h/messages?s=1"))
    flow = tape.played(call("GET", "http://h/sse", "GET"), 0, lambda: RECORDED)
    assert flow is not None
    given, sent = crossed(flow, lambda _: Reply(200, (), b"held"))
    assert (given.status, given.headers, given.body) == (200, RECORDED.headers, b"held")
    assert (sent[0].method, sent[0].body) == (OPEN, b"event: endpoint\ndata: /messages?s=1\n\n")


def test_all_else_is_its_reply_and_no_more() -> None:
    assert servers(said(0, "pay", 0, 50)).played(call("pay"), 0, lambda: RECORDED) is None
    assert speak_mcp(matcher(said(0, "pay", 0, 50)).entries)
    assert not speak_mcp(matcher(exchange(0, b"{}", reply())).entries)


@pytest.mark.parametrize("leaves", [True, False])
def test_a_session_is_begun_again_only_where_the_run_may_leave(*, leaves: bool) -> None:
    tape = servers(said(0, "initialize", 0, 5), said(1, "pay", 10, 50), leaves=leaves)
    hello = call("initialize")
    tape.answered(hello, RECORDED)
    flow = tape.before_world(lambda made: made)(call("pay"))
    assert isinstance(flow, Call) is not leaves
    _, sent = crossed(flow if not isinstance(flow, Call) else _through(flow), lambda _: Reply(200))
    assert [made.name for made in sent] == (["initialize", "pay"] if leaves else ["pay"])


def _through(made: Call) -> Flow:
    return (yield made)  # type: ignore[return-value]
