"""The official OpenAI and Anthropic SDKs in process: whole and streamed, in the agent's threads and tasks."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai
import pytest
import requests

from flakestorm.boundary import inprocess
from flakestorm.boundary.session import Crossing
from flakestorm.core.call import PULL, Call, Chunks, Reply
from flakestorm.core.pipeline import Flow, chain
from flakestorm.errors import CallFailed
from inprocess_support import Watcher, crossing
from upstream import HELLO, Gate, Upstream, anthropic_stream, openai_chat, openai_stream, text

ASK = [{"role": "user", "content": "hi"}]
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


def openai_client(up: Upstream, **options: object) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{up.url}/v1", api_key="test", **options)  # type: ignore[arg-type]


def anthropic_client(up: Upstream) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=up.url, api_key="test")


def test_openai_blocking(up: Upstream) -> None:
    watcher = Watcher()
    with crossing(watcher), openai_client(up) as client:
        whole = client.chat.completions.create(model="gpt-4o", messages=ASK)
        streamed = [
            event.choices[0].delta.content or ""
            for event in client.chat.completions.create(model="gpt-4o", messages=ASK, stream=True)
        ]
    assert (whole.choices[0].message.content, "".join(streamed)) == (HELLO, HELLO)
    assert [call.url for call in watcher.calls] == [f"{up.url}{CHAT}"] * 2
    assert up.count(CHAT) == 2


async def test_openai_asyncio(up: Upstream) -> None:
    watcher = Watcher()
    with crossing(watcher):
        async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="test") as client:
            whole = await client.chat.completions.create(model="gpt-4o", messages=ASK)
            events = await client.chat.completions.create(model="gpt-4o", messages=ASK, stream=True)
            streamed = [event.choices[0].delta.content or "" async for event in events]
    assert (whole.choices[0].message.content, "".join(streamed)) == (HELLO, HELLO)
    assert up.count(CHAT) == len(watcher.calls) == 2


def test_anthropic_blocking(up: Upstream) -> None:
    watcher = Watcher()
    with crossing(watcher), anthropic_client(up) as client:
        whole = client.messages.create(model="claude", max_tokens=9, messages=ASK)
        with client.messages.stream(model="claude", max_tokens=9, messages=ASK) as stream:
            streamed = stream.get_final_text()
    assert (whole.content[0].text, streamed) == (HELLO, HELLO)
    assert up.count(MESSAGES) == len(watcher.calls) == 2


async def test_anthropic_asyncio(up: Upstream) -> None:
    watcher = Watcher()
    with crossing(watcher):
        async with anthropic.AsyncAnthropic(base_url=up.url, api_key="test") as client:
            whole = await client.messages.create(model="claude", max_tokens=9, messages=ASK)
            async with client.messages.stream(model="claude", max_tokens=9, messages=ASK) as stream:
                streamed = await stream.get_final_text()
    assert (whole.content[0].text, streamed) == (HELLO, HELLO)
    assert up.count(MESSAGES) == len(watcher.calls) == 2


def test_openai_events_arrive_as_they_are_sent(up: Upstream) -> None:
    gate = Gate()
    up.reply(CHAT, openai_stream(["one", "two"], gates={2: gate}))
    words: list[str] = []
    with crossing(Watcher()), openai_client(up) as client:
        for event in client.chat.completions.create(model="gpt-4o", messages=ASK, stream=True):
            if word := event.choices[0].delta.content:
                words.append(word)
                gate.open()
    assert words == ["one", "two"]


async def test_anthropic_events_arrive_as_they_are_sent(up: Upstream) -> None:
    gate = Gate()
    up.reply(MESSAGES, anthropic_stream(["one", "two"], gates={3: gate}))
    words: list[str] = []
    with crossing(Watcher()):
        async with (
            anthropic.AsyncAnthropic(base_url=up.url, api_key="test") as client,
            client.messages.stream(model="claude", max_tokens=9, messages=ASK) as stream,
        ):
            async for word in stream.text_stream:
                words.append(word)
                gate.open()
    assert words == ["one", "two"]


def test_each_retry_of_an_sdk_is_a_call_of_its_own(up: Upstream) -> None:
    def limited(call: Call) -> Flow:
        headers = (("content-type", "application/json"), ("retry-after-ms", "1"))
        return Reply(429, headers, b'{"error": {"message": "slow down"}}')
        yield call

    watcher = Watcher()
    with crossing(watcher, limited), openai_client(up) as client, pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="gpt-4o", messages=ASK)
    counts = [dict(call.headers)["x-stainless-retry-count"] for call in watcher.calls]
    assert counts == ["0", "1", "2"]
    assert up.requests == []


def test_a_retry_after_one_limit_reaches_the_model(up: Upstream) -> None:
    left = [1]

    def limited_once(call: Call) -> Flow:
        if left and left.pop():
            return Reply(429, (("retry-after-ms", "1"),), b"{}")
        reply = yield call
        assert isinstance(reply, Reply)
        return reply

    watcher = Watcher()
    with crossing(watcher, limited_once), openai_client(up) as client:
        whole = client.chat.completions.create(model="gpt-4o", messages=ASK)
    assert whole.choices[0].message.content == HELLO
    assert (watcher.statuses, up.count(CHAT)) == ([429, 200], 1)


@pytest.mark.parametrize(
    ("how", "error"), [("timeout", openai.APITimeoutError), ("refused", openai.APIConnectionError)]
)
def test_a_failed_call_is_the_sdk_s_own_exception(up: Upstream, how: str, error: type[Exception]) -> None:
    def fail(call: Call) -> Flow:
        raise CallFailed(how, injected=True)  # type: ignore[arg-type]  # the parameters are its words
        yield call

    with crossing(fail), openai_client(up, max_retries=0) as client, pytest.raises(error) as caught:
        client.chat.completions.create(model="gpt-4o", messages=ASK)
    assert type(caught.value) is error
    assert up.requests == []


def test_a_stream_cut_in_the_middle_breaks_the_sdk_s_stream(up: Upstream) -> None:
    def cut() -> Chunks:
        chunk = yield PULL
        assert chunk is not None
        yield chunk
        raise CallFailed("reset", injected=True)

    def stage(call: Call) -> Flow:
        reply = yield call
        assert isinstance(reply, Reply)
        return reply.pipe(cut)

    seen: list[object] = []
    with crossing(stage), openai_client(up) as client:
        events = client.chat.completions.create(model="gpt-4o", messages=ASK, stream=True)
        with pytest.raises(openai.APIConnectionError):
            seen.extend(events)
    assert up.count(CHAT) == 1


def test_runs_in_threads_do_not_mix(up: Upstream) -> None:
    up.reply("/x", text("x"))
    together = threading.Barrier(4)
    watchers = [Watcher() for _ in range(4)]

    def agent(n: int) -> None:
        with Crossing(f"r-{n}", chain(watchers[n])).active():
            for _ in range(5):
                together.wait()
                requests.get(f"{up.url}/x?run={n}", timeout=20)

    with inprocess.held(), ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(agent, n) for n in range(4)]:
            job.result()
    for n, watcher in enumerate(watchers):
        assert [call.url for call in watcher.calls] == [f"{up.url}/x?run={n}"] * 5


async def test_runs_in_tasks_do_not_mix(up: Upstream) -> None:
    watchers = [Watcher() for _ in range(4)]

    async def agent(n: int, client: openai.AsyncOpenAI) -> None:
        with Crossing(f"r-{n}", chain(watchers[n])).active():
            for _ in range(3):
                await client.chat.completions.create(model=f"model-{n}", messages=ASK)

    with inprocess.held():
        async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="test") as client:
            await asyncio.gather(*(agent(n, client) for n in range(4)))
    for n, watcher in enumerate(watchers):
        assert len(watcher.calls) == 3
        assert all(f"model-{n}".encode() in call.body for call in watcher.calls)


def test_an_agent_s_own_threads_belong_to_its_run(up: Upstream) -> None:
    watcher = Watcher()

    def ask(client: openai.OpenAI) -> str | None:
        return client.chat.completions.create(model="gpt-4o", messages=ASK).choices[0].message.content

    with crossing(watcher), openai_client(up) as client:
        with ThreadPoolExecutor(2) as pool:
            assert [job.result() for job in [pool.submit(ask, client) for _ in range(2)]] == [HELLO, HELLO]
        thread = threading.Thread(target=ask, args=(client,))
        thread.start()
        thread.join()
        ask(client)
    assert len(watcher.calls) == 4
    assert len({call.lane for call in watcher.calls}) in (3, 4)  # one worker may have taken both jobs


async def test_concurrent_tasks_of_one_run_have_lanes_of_their_own(up: Upstream) -> None:
    watcher = Watcher()
    with crossing(watcher):
        async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="test") as client:

            async def ask() -> None:
                for _ in range(2):
                    await client.chat.completions.create(model="gpt-4o", messages=ASK)

            await asyncio.gather(ask(), ask())
    assert sorted(call.lane for call in watcher.calls) == ["1", "1", "2", "2"]


def test_a_scripted_conversation_with_a_tool(up: Upstream) -> None:
    up.reply(CHAT, openai_chat(tool_calls=[("c1", "search", {"q": "Oslo"})]), openai_chat("Sunny."))
    with crossing(Watcher()), openai_client(up) as client:
        first = client.chat.completions.create(model="gpt-4o", messages=ASK).choices[0].message
        second = client.chat.completions.create(model="gpt-4o", messages=ASK).choices[0].message
    assert first.tool_calls is not None
    assert (first.tool_calls[0].function.name, second.content) == ("search", "Sunny.")
