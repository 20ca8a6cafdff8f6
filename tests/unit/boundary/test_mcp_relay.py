import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from flakestorm.boundary.mcp_relay import End, Relay
from flakestorm.boundary.patience import Patience
from flakestorm.core.call import Call, Reply
from flakestorm.core.clock import Clock
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.stream import whole
from flakestorm.errors import CallFailed
from mcp_support import Run


def line(method: str | None = None, params: Any = None, *, key: Any = None, **more: Any) -> bytes:
    document = {"jsonrpc": "2.0", **more}
    for name, value in (("id", key), ("method", method), ("params", params)):
        if value is not None:
            document[name] = value
    return json.dumps(document).encode()


def tool(name: str, *, key: Any = 1, token: Any = None) -> bytes:
    return line(
        "tools/call", {"name": name} | ({"_meta": {"progressToken": token}} if token is not None else {}), key=key
    )


class Ends:
    """Both ends of a relay, played by the test."""

    def __init__(self, pipeline: Interceptor) -> None:
        self.client: asyncio.Queue[bytes] = asyncio.Queue()
        self.server: asyncio.Queue[bytes] = asyncio.Queue()
        self.relay = Relay(
            End("stdio://w/client", self.client.put), End("stdio://w", self.server.put),
            pipeline=lambda: pipeline, lane=lambda: "1", patience=lambda: Patience(Clock(time.monotonic)),
        )  # fmt: skip

    async def at_client(self) -> bytes:
        return await asyncio.wait_for(self.client.get(), 10)

    async def at_server(self) -> bytes:
        return await asyncio.wait_for(self.server.get(), 10)


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture
def ends(run: Run) -> Ends:
    return Ends(run.pipeline)


async def test_a_request_and_its_answer_pass_byte_for_byte_and_are_one_exchange(run: Run, ends: Ends) -> None:
    asked, answer = tool("echo"), line(key=1, result={"content": []})
    ends.relay.from_client(asked + b"\r")
    assert await ends.at_server() == asked + b"\r"
    ends.relay.from_server(answer)
    assert await ends.at_client() == answer

    exchange = run.named("echo")
    assert (str(exchange.site), exchange.wire, exchange.method, exchange.url) == (
        "mcp/echo#1",
        "mcp",
        "CALL",
        "stdio://w",
    )
    assert (exchange.reply.status, exchange.reply.body, exchange.reply.stream) == (200, answer, False)


async def test_progress_is_part_of_the_reply_and_goes_on_at_once(run: Run, ends: Ends) -> None:
    progress = line("notifications/progress", {"progressToken": "t", "progress": 1})
    ends.relay.from_client(tool("slow", token="t"))
    await ends.at_server()
    ends.relay.from_server(progress)
    assert await ends.at_client() == progress
    ends.relay.from_server(line(key=1, result={}))
    assert await ends.at_client() == line(key=1, result={})

    assert run.names == ["slow"]
    assert run.named("slow").reply.stream
    assert run.named("slow").reply.chunks == [progress + b"\n", line(key=1, result={}) + b"\n"]


async def test_progress_that_comes_together_with_the_answer_comes_first(run: Run, ends: Ends) -> None:
    said = [line("notifications/progress", {"progressToken": 5}), line(key=1, result={})]
    ends.relay.from_client(tool("slow", token=5))
    await ends.at_server()
    for each in said:
        ends.relay.from_server(each)
    assert [await ends.at_client(), await ends.at_client()] == said
    assert run.names == ["slow"]


async def test_notifications_are_accepted_both_ways(run: Run, ends: Ends) -> None:
    ends.relay.from_client(line("notifications/initialized"))
    ends.relay.from_server(line("notifications/tools/list_changed"))
    assert await ends.at_server() == line("notifications/initialized")
    assert await ends.at_client() == line("notifications/tools/list_changed")
    assert [(x.name, x.url, x.reply.status) for x in run.exchanges] == [
        ("notifications/initialized", "stdio://w", 202),
        ("notifications/tools/list_changed", "stdio://w/client", 202),
    ]


async def test_what_the_server_asks_of_its_client_is_an_exchange(run: Run, ends: Ends) -> None:
    ends.relay.from_server(line("sampling/createMessage", key=1))
    assert await ends.at_client() == line("sampling/createMessage", key=1)
    ends.relay.from_client(tool("echo", key=1))  # the same id, in the other direction
    await ends.at_server()
    ends.relay.from_client(line(key=1, result={"role": "assistant"}))
    assert await ends.at_server() == line(key=1, result={"role": "assistant"})
    assert run.named("sampling/createMessage").url == "stdio://w/client"
    await ends.relay.close()


async def test_answers_out_of_order_find_who_asked(ends: Ends) -> None:
    for key in (1, "1", 2):
        ends.relay.from_client(tool("echo", key=key))
        await ends.at_server()
    for key in (2, "1", 1):
        ends.relay.from_server(line(key=key, result={}))
        assert await ends.at_client() == line(key=key, result={})


async def test_messages_reach_the_other_end_in_order(ends: Ends) -> None:
    said = [line("notifications/message", {"n": n}) for n in range(50)]
    for each in said:
        ends.relay.from_client(each)
    assert [await ends.at_server() for _ in said] == said


async def test_what_is_no_message_passes_as_it_is_and_is_recorded(run: Run, ends: Ends) -> None:
    ends.relay.from_server(b"starting up")
    ends.relay.from_client(b"[" + line("ping", key=1) + b"]")
    ends.relay.from_client(b"  ")
    ends.relay.from_server(line(key="unknown", result={}))
    assert await ends.at_client() == b"starting up"
    assert await ends.at_server() == b"[" + line("ping", key=1) + b"]"
    assert await ends.at_client() == line(key="unknown", result={})
    assert run.names == ["batch", "batch", "response"]


async def test_a_cancelled_request_ends_and_the_server_is_told() -> None:
    run = Run(({"tool": "echo", "mode": "slow", "delay_ms": 60_000},))
    ends = Ends(run.pipeline)
    cancelled = line("notifications/cancelled", {"requestId": 1})
    ends.relay.from_client(tool("echo"))
    ends.relay.from_client(cancelled)
    assert await ends.at_server() == cancelled
    await asyncio.sleep(0)
    await ends.relay.close()
    assert run.named("echo").reply.end == "client left"
    assert run.named("echo").sent == 0


async def test_an_answer_that_nobody_waits_for_any_more_goes_nowhere(run: Run, ends: Ends) -> None:
    ends.relay.from_client(tool("echo"))
    await ends.at_server()
    ends.relay.from_client(line("notifications/cancelled", {"requestId": 1}))
    await ends.at_server()
    ends.relay.from_server(line(key=1, result={}))
    ends.relay.from_server(line("notifications/message"))
    assert await ends.at_client() == line("notifications/message")


async def test_a_server_that_is_gone_fails_what_it_was_asked(run: Run, ends: Ends) -> None:
    ends.relay.from_client(tool("echo"))
    await ends.at_server()
    await ends.relay.server_gone("has ended (exit code 7)")
    error = json.loads(await ends.at_client())
    assert (error["id"], error["error"]["code"]) == (1, -32000)
    assert "has ended (exit code 7)" in error["error"]["message"]
    assert run.named("echo").reply.end == "broken"


def failing(failure: Callable[[], Exception]) -> Interceptor:
    def stage(_: Call) -> Flow:
        raise failure()
        yield

    return stage


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (lambda: CallFailed("timeout", "no answer within 5 ms"), -32001, "no answer within 5 ms"),
        (lambda: CallFailed("reset"), -32000, "reset"),
        (lambda: ZeroDivisionError("oops"), -32603, "oops"),
    ],
)
async def test_a_call_that_breaks_is_an_error_to_who_made_it(
    failure: Callable[[], Exception], code: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    ends = Ends(failing(failure))
    with caplog.at_level(logging.CRITICAL):
        ends.relay.from_client(line("notifications/initialized"))  # nobody waits for an answer
        ends.relay.from_client(tool("echo", key="k"))
        error = json.loads(await ends.at_client())
    assert (error["id"], error["error"]["code"]) == ("k", code)
    assert words in error["error"]["message"]
    assert ends.client.empty()
    assert ends.server.empty()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(503, (), b'{"error": "down"}'), {"error": {"code": -32603, "message": '{"error": "down"}'}}),
        (Reply(200), {"error": {"code": -32603, "message": "the server answered nothing (status 200)"}}),
        (Reply(200, (), json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}, indent=1).encode()), {"result": {}}),
        (Reply(200, (), b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'), {"result": {}}),
    ],
    ids=["http error", "nothing", "pretty", "events"],
)
async def test_whatever_a_stage_answers_is_one_line(reply: Reply, expected: dict[str, Any]) -> None:
    def stage(_: Call) -> Flow:
        return reply
        yield

    ends = Ends(stage)
    ends.relay.from_client(tool("echo"))
    said = await ends.at_client()
    assert b"\n" not in said
    assert json.loads(said) == {"jsonrpc": "2.0", "id": 1, **expected}


async def test_a_stage_may_change_what_is_asked_and_what_is_said() -> None:
    def stage(call: Call) -> Flow:
        from dataclasses import replace

        reply = yield replace(call, body=call.body.replace(b"echo", b"other"))
        assert reply is not None
        return reply.pipe(whole(lambda body: body.replace(b"true", b"false")))

    ends = Ends(chain(stage))
    ends.relay.from_client(tool("echo"))
    assert await ends.at_server() == tool("other")
    ends.relay.from_server(line(key=1, result={"ok": True}))
    assert await ends.at_client() == line(key=1, result={"ok": False})


async def test_what_a_stage_has_the_server_say_reaches_the_client_alone() -> None:
    def played(call: Call) -> Flow:
        if call.name != "echo":  # said by the stage itself, and to be answered by the client
            return (yield call)
        for method, key in (("CALL", "a"), ("LATER", "b")):
            yield replace(call, method=method, url="stdio://w/client", body=line("roots/list", key=key))
        return Reply(200, (("content-type", "application/json"),), line(key=1, result={}))

    run = Run()
    ends = Ends(chain(run.pipeline, played))
    ends.relay.from_client(tool("echo"))
    assert await ends.at_client() == line("roots/list", key="a")
    assert ends.client.empty(), "the answer waits for the client's own"
    ends.relay.from_client(line(key="a", result={"roots": []}))
    assert await ends.at_client() == line(key=1, result={})
    assert await ends.at_client() == line("roots/list", key="b")
    ends.relay.from_client(line(key="b", result={"roots": []}))
    await asyncio.wait_for(ends.relay.server_gone("is not there"), 10)
    assert ends.server.empty()
    assert [exchange.name for exchange in run.exchanges] == ["echo", "roots/list", "roots/list"]
    assert [exchange.reply.end for exchange in run.exchanges] == ["eof"] * 3
