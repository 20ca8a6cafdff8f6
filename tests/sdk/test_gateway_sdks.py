"""Real clients in real processes, by base-URL variable: what they say crosses once and comes back unchanged."""

from __future__ import annotations

import json
import textwrap
from collections.abc import AsyncIterator

import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow
from flakestorm.errors import CallFailed
from gateway_support import Held, held, run_python
from upstream import HELLO, Upstream, openai_chat, text


@pytest.fixture
async def gate(up: Upstream) -> AsyncIterator[Held]:
    async with held(OPENAI_BASE_URL=f"{up.url}/v1", ANTHROPIC_BASE_URL=up.url) as it:
        yield it


OPENAI = """
import openai
client = openai.OpenAI()
reply = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])
print(reply.choices[0].message.content)
"""
OPENAI_STREAM = """
import openai
client = openai.OpenAI()
stream = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}], stream=True)
print("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))
"""
OPENAI_ASYNC = """
import asyncio, openai
async def main():
    async with openai.AsyncOpenAI() as client:
        stream = await client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "hi"}], stream=True)
        parts = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        print("".join(parts))
asyncio.run(main())
"""
ANTHROPIC = """
import anthropic
client = anthropic.Anthropic()
reply = client.messages.create(model="claude", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
print(reply.content[0].text)
"""
ANTHROPIC_STREAM = """
import anthropic
client = anthropic.Anthropic()
with client.messages.stream(model="claude", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
    print("".join(stream.text_stream))
"""
ANTHROPIC_ASYNC = """
import asyncio, anthropic
async def main():
    async with anthropic.AsyncAnthropic() as client:
        reply = await client.messages.create(
            model="claude", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
        print(reply.content[0].text)
asyncio.run(main())
"""
CLIENTS = {
    "openai": (OPENAI, "/v1/chat/completions"),
    "openai-stream": (OPENAI_STREAM, "/v1/chat/completions"),
    "openai-async-stream": (OPENAI_ASYNC, "/v1/chat/completions"),
    "anthropic": (ANTHROPIC, "/v1/messages"),
    "anthropic-stream": (ANTHROPIC_STREAM, "/v1/messages"),
    "anthropic-async": (ANTHROPIC_ASYNC, "/v1/messages"),
}


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_provider_sdk_crosses_once_and_hears_what_was_said(gate: Held, up: Upstream, name: str) -> None:
    code, path = CLIENTS[name]

    assert (await run_python(gate, code)).strip() == HELLO

    assert up.count() == up.count(path) == 1
    (seen,) = gate.watch.seen
    assert seen.call.url == f"{up.url}{path}"
    assert await seen.over() == "eof"
    assert json.loads(seen.call.body)["messages"][0]["content"] == "hi"
    sent = up.requests[0]
    assert sent.body == seen.call.body
    assert sent.headers["host"] == f"127.0.0.1:{up.port}"
    assert sent.headers["accept-encoding"] == "identity"
    assert not [name for name in sent.headers if name.startswith(("x-flakestorm", "proxy-"))]


@pytest.mark.parametrize("name", ["openai", "anthropic"])
async def test_without_the_shim_a_base_url_still_leads_through_the_gateway(gate: Held, up: Upstream, name: str) -> None:
    code, path = CLIENTS[name]

    assert (await run_python(gate, code, PYTHONPATH="")).strip() == HELLO

    assert gate.watch.urls == [f"{up.url}{path}"]


async def test_every_retry_of_an_sdk_is_a_call_of_its_own(gate: Held, up: Upstream) -> None:
    busy = text('{"error": {"message": "busy"}}', status=429, content_type="application/json")
    up.reply("/v1/chat/completions", busy, busy, openai_chat("third time"))
    quick = OPENAI.replace("openai.OpenAI()", "openai.OpenAI(max_retries=2)")

    assert (await run_python(gate, "import time; time.sleep = lambda s: None\n" + quick)).strip() == "third time"

    assert [seen.reply.status for seen in gate.watch.seen if seen.reply] == [429, 429, 200]
    counts = [dict(seen.call.headers).get("x-stainless-retry-count") for seen in gate.watch.seen]
    assert counts == ["0", "1", "2"]


async def test_a_stage_that_answers_keeps_the_request_from_the_world(up: Upstream) -> None:
    def outage(_: Call) -> Flow:
        return Reply(503, (("Content-Type", "application/json"),), b'{"error": {"message": "out"}}')
        yield

    code = textwrap.dedent("""
        import openai
        try:
            openai.OpenAI(max_retries=0).models.list()
        except openai.InternalServerError as error:
            print(error.status_code, error.body["message"])
    """)
    async with held(outage, OPENAI_BASE_URL=f"{up.url}/v1") as gate:
        assert (await run_python(gate, code)).strip() == "503 out"

    assert up.count() == 0


@pytest.mark.parametrize(
    ("how", "expected"),
    [("timeout", "APITimeoutError"), ("refused", "APIConnectionError"), ("reset", "APIConnectionError")],
)
async def test_a_broken_call_is_the_sdks_own_exception(up: Upstream, how: str, expected: str) -> None:
    def broken(_: Call) -> Flow:
        raise CallFailed(how, "broken on purpose", injected=True)  # type: ignore[arg-type]
        yield

    code = textwrap.dedent("""
        import openai
        try:
            openai.OpenAI(max_retries=0).models.list()
        except openai.APIError as error:
            print(type(error).__name__)
    """)
    async with held(broken, OPENAI_BASE_URL=f"{up.url}/v1") as gate:
        assert (await run_python(gate, code)).strip() == expected

    assert up.count() == 0


async def test_without_the_shim_a_plain_http_url_crosses_by_the_proxy(gate: Held, up: Upstream) -> None:
    up.reply("/search", text("found"))
    code = "import sys, requests; print(requests.get(sys.argv[1]).text)"

    assert (await run_python(gate, code, f"{up.url}/search", PYTHONPATH="")).strip() == "found"

    assert gate.watch.urls == [f"{up.url}/search"]


async def test_without_the_shim_an_https_url_is_an_opaque_call(gate: Held) -> None:
    code = textwrap.dedent("""
        import requests
        try:
            requests.get("https://127.0.0.1:1/x")
        except requests.exceptions.ProxyError:
            print("refused")
    """)

    assert (await run_python(gate, code, PYTHONPATH="")).strip() == "refused"

    assert [(seen.call.method, seen.call.url) for seen in gate.watch.seen] == [("CONNECT", "https://127.0.0.1:1")]


async def test_programs_that_an_agent_starts_cross_too(gate: Held, up: Upstream) -> None:
    up.reply("/search", text("found"))
    child = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}, sys.argv[1]], check=True)"

    assert (await run_python(gate, code, f"{up.url}/search")).strip() == "found"

    assert gate.watch.urls == [f"{up.url}/search"]
