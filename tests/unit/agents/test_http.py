"""HTTP agents that are already running: what their replies and failures become."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents_support import FakeBoundary, FakeChannel, FakeLine, config, serving, talking
from flakestorm.agents import delivery, http
from flakestorm.agents.http import HttpAgent
from flakestorm.agents.ready import free_port
from flakestorm.core.answer import AgentError, Answer
from flakestorm.errors import AgentUnreachable, ConfigError, Misuse

LINE = FakeLine()


async def ask(url: str, prompt: str = "hello", *, retries: int = 0, line: FakeLine = LINE, **agent: Any) -> Answer:
    made = HttpAgent(config(Path(), retries=retries, endpoint=url, **agent), FakeBoundary(), concurrency=4)
    await made.start()
    try:
        return await made.ask(prompt, line)
    finally:
        await made.close()


def replying(*bodies: bytes, status: int = 200) -> Any:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(body=bodies[0], status=status)

    return handler


async def test_the_output_the_status_and_the_time() -> None:
    async with serving(replying(b'{"choices": [{"text": "hi"}]}', status=201)) as url:
        answer = await ask(url, response_path="choices.0.text")
    assert (answer.output, answer.error, answer.status) == ("hi", None, 201)
    assert answer.latency_ms > 0


@pytest.mark.parametrize(
    "prompt", ['say "hi"', "two\nlines", "{braces} {prompt}", "naïve 日本 \U0001f600", "\\ \t \x00", ""]
)
async def test_the_agent_receives_the_input_unharmed(prompt: str) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        assert request.headers["X-Team"] == "blue"
        assert request.query == {"v": "2", "lang": "en"}
        data = await request.json()
        return web.json_response({"output": data["messages"][0]["content"]})

    async with serving(handler) as url:
        answer = await ask(
            f"{url}/ask?v=2",
            prompt,
            request_template='{"messages": [{"role": "user", "content": "{prompt}"}]}',
            headers={"X-Team": "blue"},
            query_params={"lang": "en"},
        )
    assert answer == Answer(prompt, latency_ms=answer.latency_ms, status=200)


async def test_get_sends_a_query_and_no_body() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        assert await request.read() == b""
        return web.json_response({"output": dict(request.query), "method": request.method})

    async with serving(handler) as url:
        assert json.loads((await ask(url, "a&b=c", method="GET")).output) == {"input": "a&b=c"}


@pytest.mark.parametrize(
    ("body", "status", "kind", "said"),
    [
        (b'{"detail": "broken"}', 500, "http", 'HTTP 500 Internal Server Error: "{"detail": "broken"}"'),
        (b"", 404, "http", "HTTP 404 Not Found: no body"),
        (b"<html>hello</html>", 200, "unreadable", 'not JSON: "<html>hello</html>"'),
        (b'{"data": 1}', 200, "unreadable", "data"),
        (b'{"error": "no key"}', 200, "error", "no key"),
    ],
)
async def test_what_is_no_output_is_an_error_with_its_reason(body: bytes, status: int, kind: str, said: str) -> None:
    async with serving(replying(body, status=status)) as url:
        answer = await ask(url, retries=2)
    assert answer.error is not None
    assert answer.error.kind == kind
    assert said in answer.error.message
    assert (answer.output, answer.status) == ("", status)


def redirecting(*steps: tuple[int, str]) -> tuple[Any, list[tuple[str, str, bytes]]]:
    """A handler that answers /0 with the first step, /1 with the second ..., anything else with what it received."""
    seen: list[tuple[str, str, bytes]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, request.path_qs, await request.read()))
        number = request.path.removeprefix("/")
        if number.isdigit() and int(number) < len(steps):
            status, location = steps[int(number)]
            return web.Response(status=status, headers={"Location": location} if location else {})
        return web.json_response({"output": "found"})

    return handler, seen


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_that_keeps_the_request_is_followed_with_method_and_body(status: int) -> None:
    handler, seen = redirecting((status, "/1?moved=1"), (status, "2"))
    async with serving(handler) as url:
        answer = await ask(f"{url}/0", query_params={"v": "1"})
    assert (answer.output, answer.error) == ("found", None)
    body = b'{"input": "hello"}'
    assert seen == [("POST", "/0?v=1", body), ("POST", "/1?moved=1", body), ("POST", "/2", body)]


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_lose_the_input_is_an_error_that_names_the_place(status: int) -> None:
    handler, seen = redirecting((status, "/login?next=0"))
    async with serving(handler) as url:
        answer = await ask(f"{url}/0")
    assert answer.error is not None
    assert (answer.error.kind, answer.status, len(seen)) == ("http", status, 1)
    assert 'redirected to "/login?next=0"' in answer.error.message


async def test_a_get_stays_one_on_any_redirect() -> None:
    handler, seen = redirecting((302, "/1"), (303, "/2"))
    async with serving(handler) as url:
        assert (await ask(f"{url}/0", method="GET")).output == "found"
    assert [(method, path) for method, path, _ in seen] == [("GET", "/0?input=hello"), ("GET", "/1"), ("GET", "/2")]


@pytest.mark.parametrize("location", ["http://other.example/x", "ftp://127.0.0.1/", "http://[", ""])
async def test_the_input_goes_to_no_other_host(location: str) -> None:
    handler, seen = redirecting((307, location))
    async with serving(handler) as url:
        answer = await ask(f"{url}/0")
    assert answer.error is not None
    assert (answer.error.kind, len(seen)) == ("http", 1)
    assert (location or "no Location") in answer.error.message


async def test_redirects_that_go_round_and_round_end() -> None:
    handler, seen = redirecting((307, "/0"))
    async with serving(handler) as url:
        answer = await ask(f"{url}/0")
    assert answer.error is not None
    assert (answer.error.kind, len(seen)) == ("http", http.REDIRECT_LIMIT + 1)


async def test_a_null_error_is_a_success() -> None:
    async with serving(replying(b'{"error": null, "output": "fine"}')) as url:
        assert (await ask(url)).output == "fine"


async def test_no_answer_in_time_is_a_timeout_and_not_tried_again() -> None:
    asked = 0

    async def never(request: web.BaseRequest) -> web.Response:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(never) as url:
        answer = await ask(url, timeout=50, retries=3)
    assert answer.error == AgentError("timeout", "no answer within 50 ms")
    assert asked == 1


async def test_an_answer_that_never_ends_is_a_timeout_too() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await reader.read()
        await reader.read(1)

    async with talking(script) as url:
        answer = await ask(url, timeout=50)
    assert answer.error is not None
    assert answer.error.kind == "timeout"


async def test_an_agent_that_nobody_started_is_said_before_any_run() -> None:
    port = free_port()
    with pytest.raises(AgentUnreachable, match=rf"nothing listens on 127.0.0.1:{port} .*start the agent first"):
        await ask(f"http://127.0.0.1:{port}/ask")


async def test_an_agent_that_went_away_is_unreachable() -> None:
    agent = None
    async with serving(replying(b'"x"')) as url:
        agent = HttpAgent(config(Path(), endpoint=url, retries=2), FakeBoundary(), concurrency=1)
        await agent.start()
    answer = await agent.ask("hello", LINE)
    await agent.close()
    assert answer.error is not None
    assert answer.error.kind == "unreachable"
    assert url in answer.error.message


async def dropping(times: int, retries: int, *, calls: int = 0) -> tuple[Answer, int]:
    asked = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        if not await reader.read(1):
            return  # only looked whether anybody listens
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        if asked > times:
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"ok"')
            await writer.drain()

    async with talking(script) as url:
        return await ask(url, retries=retries, line=FakeLine(calls=calls)), asked


async def test_a_dropped_connection_is_tried_again() -> None:
    answer, asked = await dropping(times=2, retries=2)
    assert (answer.output, asked) == ("ok", 3)


async def test_an_agent_that_had_begun_to_work_is_not_asked_twice() -> None:
    answer, asked = await dropping(times=1, retries=2, calls=1)
    assert answer.error is not None
    assert (answer.error.kind, asked) == ("crash", 1)


async def test_an_agent_that_always_drops_the_connection_has_crashed() -> None:
    answer, asked = await dropping(times=9, retries=1)
    assert answer.error is not None
    assert answer.error.kind == "crash"
    assert "closed the connection without a reply" in answer.error.message
    assert asked == 2


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "broke off"),
        (b"SMTP ready\r\n\r\n", "not valid HTTP"),
    ],
)
async def test_half_a_reply_is_unreadable_and_not_tried_again(sent: bytes, said: str) -> None:
    asked = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        if await reader.read(1):
            asked += 1
            await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            await writer.drain()

    async with talking(script) as url:
        answer = await ask(url, retries=3)
    assert answer.error is not None
    assert answer.error.kind == "unreadable"
    assert said in answer.error.message
    assert asked == 1


async def test_a_reply_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BODY_LIMIT_BYTES", 2**20)
    async with serving(replying(b'"' + b"x" * 2**21 + b'"')) as url:
        answer = await ask(url)
    assert answer.error == AgentError("unreadable", "the reply is larger than 1 MB")


async def test_large_inputs_are_sent_whole() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        body = await request.content.read()
        return web.json_response({"output": len(json.loads(body)["input"])})

    async with serving(handler) as url:
        assert (await ask(url, "x" * 3_000_000)).output == "3000000"


async def test_runs_overlap() -> None:
    met = asyncio.Barrier(4)

    async def handler(request: web.BaseRequest) -> web.Response:
        await met.wait()
        return web.json_response("ok")

    async with serving(handler) as url, asyncio.timeout(20):
        agent = HttpAgent(config(Path(), endpoint=url), FakeBoundary(), concurrency=4)
        await agent.start()
        answers = await asyncio.gather(*(agent.ask("x", LINE) for _ in range(4)))
        await agent.close()
    assert [answer.output for answer in answers] == ["ok"] * 4


async def test_nothing_is_carried_from_one_run_to_the_next() -> None:
    seen: list[dict[str, str]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(dict(request.cookies))
        reply = web.json_response("ok")
        reply.set_cookie("session", "1")
        return reply

    async with serving(handler) as url:
        agent = HttpAgent(config(Path(), endpoint=url), FakeBoundary(), concurrency=1)
        await agent.start()
        await agent.ask("a", LINE)
        await agent.ask("b", LINE)
        await agent.close()
    assert seen == [{}, {}]


async def test_a_running_agent_is_reset_before_each_run_and_runs_do_not_overlap() -> None:
    log: list[str] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        log.append(request.path)
        await asyncio.sleep(0)
        log.append(request.path)
        return web.json_response("ok")

    async with serving(handler) as url:
        agent = HttpAgent(config(Path(), endpoint=f"{url}/ask", reset_endpoint="/reset"), FakeBoundary(), concurrency=3)
        await agent.start()
        await asyncio.gather(*(agent.ask("x", LINE) for _ in range(3)))
        await agent.close()
    assert log == ["/reset", "/reset", "/ask", "/ask"] * 3


async def test_a_reset_that_fails_leaves_the_run_unjudged() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        assert request.path == "/reset", "asked although the reset failed"
        return web.Response(status=500, text="the store is locked")

    async with serving(handler) as url:
        answer = await ask(f"{url}/ask", reset_endpoint=f"{url}/reset")
    assert answer.error is not None
    assert answer.error.kind == "unreachable"
    assert answer.error.message.startswith("reset failed: POST ")
    assert "the store is locked" in answer.error.message


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ({"endpoint": "localhost:8000"}, "is not an HTTP URL"),
        ({"endpoint": "http://a:{port}/"}, "no start"),
        ({"endpoint": "http://a/", "headers": {"X": "a\r\nY: b"}}, "line breaks"),
        ({"endpoint": "http://a/", "response_path": "a["}, "not a path"),
    ],
)
def test_what_cannot_work_is_refused_when_the_agent_is_made(agent: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        HttpAgent(config(Path(), **agent), FakeBoundary(), concurrency=1)


async def test_asking_before_starting_is_misuse() -> None:
    agent = HttpAgent(config(Path(), endpoint="http://127.0.0.1:9/"), FakeBoundary(), concurrency=1)
    with pytest.raises(Misuse, match="start"):
        await agent.ask("x", LINE)
    await agent.close()


async def test_an_agent_behind_a_standing_gateway_serves_one_run_at_a_time() -> None:
    boundary = FakeBoundary()
    boundary.shared = FakeChannel(0)
    bound: list[str | None] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        assert boundary.shared is not None
        bound.append(boundary.shared.bound)
        return web.json_response({"output": "ok"})

    async with serving(handler) as url:
        agent = HttpAgent(config(Path(), endpoint=url), boundary, concurrency=3)
        await agent.start()
        try:
            await asyncio.gather(*(agent.ask("hello", FakeLine(f"r-{n}")) for n in range(3)))
        finally:
            await agent.close()
    assert sorted(map(str, bound)) == boundary.shared.runs == ["r-0", "r-1", "r-2"]


async def ask_changed(url: str, change: Any, *, retries: int = 0, **agent: Any) -> Answer:
    made = HttpAgent(config(Path(), retries=retries, endpoint=url, **agent), FakeBoundary(), concurrency=4)
    await made.start()
    try:
        return await made.ask_changed("hello", LINE, change)
    finally:
        await made.close()


async def test_a_changed_request_is_what_is_sent() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        said = await request.json()
        return web.json_response({"output": [request.method, request.headers["X-Odd"], said["input"]]})

    async with serving(handler) as url:
        answer = await ask_changed(url, lambda request: replace(request.header("X-Odd", "1"), method="PUT"))
    assert json.loads(answer.output) == ["PUT", "1", "hello"]


async def test_waiting_on_purpose_is_not_the_agents_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses are longer than the agent may take. They are noted, not waited for, so no time of its own is left."""
    paused: list[float] = []

    async def pause(_: object, seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(delivery, "_pause", pause)
    async with serving(replying(b'{"output": "hi"}')) as url:
        answer = await ask_changed(url, lambda request: request.sent(pieces=3, pause_s=60.0), timeout=1000)
    assert (answer.output, answer.latency_ms, paused) == ("hi", 0.0, [60.0, 60.0])


async def test_of_several_replies_the_one_that_failed_counts() -> None:
    asked = 0

    async def handler(request: web.BaseRequest) -> web.Response:
        nonlocal asked
        asked += 1
        return web.json_response({"output": "hi"}, status=500 if asked == 2 else 200)

    async with serving(handler) as url:
        answer = await ask_changed(url, lambda request: request.sent(copies=3))
    assert (asked, answer.status) == (3, 500)


async def test_a_changed_request_goes_to_the_agents_host_and_is_not_tried_again() -> None:
    reached: list[str] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.read(65536)).endswith(b"}"):  # the first to connect only looks whether anybody listens
            reached.append("once")

    async with talking(script) as url:
        answer = await ask_changed(url, lambda request: request, retries=5)
    assert answer.error is not None
    assert (answer.error.kind, reached) == ("crash", ["once"])
    handler, seen = redirecting((307, "/1"), (308, "http://elsewhere.invalid/"))
    async with serving(handler) as url:
        answer = await ask_changed(f"{url}/0", lambda request: request)
    assert answer.error is not None
    assert answer.error.message.startswith("HTTP 308")
    assert [path for _, path, _ in seen] == ["/0", "/1"]
