import json

from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange
from flakestorm.tape.prompts import openings_of, prompts_of
from flakestorm.wire.mcp.protocol import LATER, to_client
from replay_support import exchange, matcher, reply


def said(n: int, name: str, begin_ms: float, end_ms: float, url: str = "stdio://w", lane: str = "1") -> Exchange:
    body = {"jsonrpc": "2.0", "id": n, "method": name}
    answer = reply() if "notifications" not in name else reply("", status=202, chunks=[])
    at = {"t_ms": begin_ms, "duration_ms": end_ms - begin_ms}
    site = Site("mcp", name, n + 1)
    return exchange(n, body, answer, site=site, url=url, lane=lane, method="CALL", wire="mcp", headers=(), **at)


def found(*exchanges: Exchange) -> dict[int, list[tuple[int, bool]]]:
    prompts = prompts_of(matcher(*exchanges).entries)
    return {n: [(prompt.entry.n, prompt.later) for prompt in each] for n, each in prompts.items()}


def test_what_a_server_says_goes_with_the_call_it_is_at_work_for() -> None:
    assert found(
        said(0, "pay", 0, 50),
        said(1, "tools/list", 10, 50),
        said(2, "elicitation/create", 20, 30, "stdio://w/client"),
    ) == {0: [(2, False)]}


def test_after_all_answers_it_goes_with_the_last_message() -> None:
    assert found(
        said(0, "initialize", 0, 5),
        said(1, "notifications/initialized", 10, 10),
        said(2, "roots/list", 20, 30, "stdio://w/client"),
    ) == {1: [(2, True)]}


def test_before_any_message_it_goes_with_the_first() -> None:
    assert found(
        said(0, "notifications/message", 0, 0, "stdio://w/client"),
        said(1, "initialize", 5, 9),
    ) == {1: [(0, False)]}


def test_each_pipe_has_its_own() -> None:
    assert found(
        said(0, "pay", 0, 50),
        said(1, "pay", 0, 50, lane="2"),
        said(2, "pay", 0, 50, "stdio://v"),
        said(3, "notifications/message", 20, 20, "stdio://w/client"),
        said(4, "notifications/message", 20, 20, "stdio://gone/client"),
    ) == {0: [(3, False)]}


def test_a_prompt_as_a_call() -> None:
    entries = matcher(
        said(0, "pay", 0, 50),
        said(1, "roots/list", 20, 20, "stdio://w/client"),
        said(2, "roots/list", 70, 70, "stdio://w/client"),
    ).entries
    during, after = (prompt.call("7", prompt.entry.spoken) for prompt in prompts_of(entries)[0])
    assert (during.method, after.method, during.url, during.lane) == ("CALL", LATER, "stdio://w/client", "7")
    assert json.loads(after.body) == {"jsonrpc": "2.0", "id": 2, "method": "roots/list"}
    assert to_client(during.method, during.url)
    assert to_client(after.method, after.url)


def test_without_any_nothing_is_kept() -> None:
    assert found(said(0, "pay", 0, 50)) == {}
    assert not matcher(said(0, "pay", 0, 50)).entries[0].spoken


def test_a_stream_that_the_gateway_held_begins_where_it_says_where_to_post() -> None:
    events = [b"event: endpoint\r\ndata: /r/T/p/mcp-w/messages?s=1\r\n\r\n", b"event: message\ndata: {}\n\n"]
    stream = reply(stream=True, chunks=events)
    opened = exchange(0, b"", stream, site=Site("mcp", "GET", 1), method="GET", url="http://h/sse")
    called = said(1, "pay", 0, 50, "http://h/messages?s=1")
    assert openings_of(matcher(opened, called).entries) == {0: b"event: endpoint\ndata: /messages?s=1\n\n"}
    assert openings_of(matcher(opened).entries) == {}
    assert openings_of(matcher(opened, said(1, "pay", 0, 50, "http://h/other")).entries) == {}
