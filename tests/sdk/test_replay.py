"""The official SDKs see on replay what they saw when it was recorded, whole and streamed, and nobody is called."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

import flakestorm
from flakestorm.tape.reader import Tape
from flakestorm.tape.writer import Recorder
from upstream import HANG_UP, RESET, Canned, Request, Upstream, document, openai_chat, openai_stream, sse

ASKED: list[Any] = [{"role": "user", "content": "a flight to Oslo"}]


def _openai(up: Upstream, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{up.url}/v1", api_key="sk-test", **more)


def _whole(up: Upstream) -> Any:
    with _openai(up) as client:
        return client.chat.completions.create(model="gpt-4o", messages=ASKED)


def _streamed(up: Upstream) -> Any:
    with _openai(up) as client:
        return list(client.chat.completions.create(model="gpt-4o", messages=ASKED, stream=True))


def _claude(up: Upstream) -> Any:
    with anthropic.Anthropic(base_url=up.url, api_key="sk-ant-test") as client:
        return client.messages.create(model="claude", max_tokens=64, messages=ASKED)


def _claude_streamed(up: Upstream) -> Any:
    with anthropic.Anthropic(base_url=up.url, api_key="sk-ant-test") as client:
        return list(client.messages.create(model="claude", max_tokens=64, messages=ASKED, stream=True))


@pytest.mark.parametrize("ask", [_whole, _streamed, _claude, _claude_streamed])
def test_an_sdk_gets_the_same_objects_and_nobody_is_called(
    up: Upstream, tmp_path: Path, ask: Callable[[Upstream], Any]
) -> None:
    with flakestorm.record(tmp_path / "a.tape"):
        before = ask(up)
    called = up.count()
    assert flakestorm.replay(tmp_path / "a.tape", lambda: ask(up)) == before
    assert up.count() == called > 0


def test_retries_are_replayed_one_by_one(up: Upstream, tmp_path: Path) -> None:
    busy = document({"error": {"message": "slow down"}}, status=429)
    busy = Canned(busy.pieces, busy.status, (*busy.headers, ("retry-after-ms", "1")))
    up.reply("/v1/chat/completions", busy, busy, openai_chat("At last."))
    with flakestorm.record(tmp_path / "a.tape") as recording:
        _whole(up)
        assert [e.reply.status for e in recording.exchanges] == [429, 429, 200]
    said = flakestorm.replay(tmp_path / "a.tape", lambda: _whole(up))
    assert (said.choices[0].message.content, up.count()) == ("At last.", 3)


@pytest.mark.parametrize("sign", [RESET, HANG_UP])
def test_a_connection_that_broke_breaks_again(up: Upstream, tmp_path: Path, sign: Any) -> None:
    up.reply("/v1/chat/completions", Canned((sign,)))

    def ask() -> str:
        with _openai(up, max_retries=0) as client:
            try:
                client.chat.completions.create(model="gpt-4o", messages=ASKED)
            except openai.APIConnectionError as error:
                return type(error).__name__
        return "answered"

    with flakestorm.record(tmp_path / "a.tape"):
        assert ask() == "APIConnectionError"
    assert flakestorm.replay(tmp_path / "a.tape", ask) == "APIConnectionError"
    assert up.count() == 1


def test_a_stream_that_broke_breaks_at_the_same_place(up: Upstream, tmp_path: Path) -> None:
    pieces = openai_stream("one two three").pieces
    up.reply("/v1/chat/completions", Canned((*pieces[:2], HANG_UP), 200, sse([]).headers, chunked=True))

    def ask() -> tuple[int, str]:
        seen = 0
        with _openai(up, max_retries=0) as client:
            try:
                for _ in client.chat.completions.create(model="gpt-4o", messages=ASKED, stream=True):
                    seen += 1
            except Exception as error:
                return seen, type(error).__name__
        return seen, "whole"

    with flakestorm.record(tmp_path / "a.tape"):
        before = ask()
    assert before[1] != "whole"
    assert flakestorm.replay(tmp_path / "a.tape", ask) == before


def test_a_mismatch_names_the_nearest_entry_even_where_it_is_swallowed(up: Upstream, tmp_path: Path) -> None:
    with flakestorm.record(tmp_path / "a.tape"):
        _whole(up)

    def other() -> str:
        with _openai(up) as client, pytest.raises(openai.BadRequestError, match="flakestorm replay"):
            client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "to Bergen"}])
        return "all is well"

    with pytest.raises(flakestorm.TapeMismatch, match=r"nearest entry is llm/gpt-4o#1.*Oslo.*Bergen"):
        flakestorm.replay(tmp_path / "a.tape", other)
    assert up.count() == 1


def test_async_functions_are_recorded_and_replayed(up: Upstream, tmp_path: Path) -> None:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="sk-test") as client:
            stream = await client.chat.completions.create(model="gpt-4o", messages=ASKED, stream=True)
            return [chunk async for chunk in stream]

    async def recorded() -> Any:
        with flakestorm.record(tmp_path / "a.tape"):
            return await ask()

    async def inside() -> Any:
        return await flakestorm.replay(tmp_path / "a.tape", ask)

    before = asyncio.run(recorded())
    assert flakestorm.replay(tmp_path / "a.tape", ask) == before
    assert asyncio.run(inside()) == before
    assert up.count() == 1


def _numbered() -> Callable[[Request], Canned]:
    numbers, lock = itertools.count(1), threading.Lock()

    def answer(_: Request) -> Canned:
        with lock:
            return document({"n": next(numbers)})

    return answer


def test_identical_concurrent_calls_get_a_reply_of_their_own(up: Upstream, tmp_path: Path) -> None:
    up.reply("/search", _numbered())

    async def ask() -> list[int]:
        async with httpx.AsyncClient() as client:

            async def one() -> int:
                first = (await client.post(f"{up.url}/search", json={"to": "Oslo"})).json()["n"]
                again = await client.post(f"{up.url}/search", json={"after": first})
                return int(first) * 100 + int(again.json()["n"])

            return list(await asyncio.gather(*(one() for _ in range(8))))

    async def recorded() -> list[int]:
        with flakestorm.record(tmp_path / "a.tape"):
            return await ask()

    before = asyncio.run(recorded())
    for _ in range(20):
        assert sorted(flakestorm.replay(tmp_path / "a.tape", ask)) == sorted(before)
    assert up.count() == 16


def test_threads_are_recorded_and_replayed(up: Upstream, tmp_path: Path) -> None:
    up.reply("/search", _numbered())

    def ask() -> list[int]:
        def one(n: int) -> int:
            with httpx.Client() as client:
                return int(client.post(f"{up.url}/search", json={"to": "Oslo"}).json()["n"])

        with ThreadPoolExecutor(8) as pool:
            return sorted(pool.map(one, range(8)))

    with flakestorm.record(tmp_path / "a.tape"):
        before = ask()
    assert before == list(range(1, 9))
    for _ in range(20):
        assert flakestorm.replay(tmp_path / "a.tape", ask) == before


def test_a_thousand_replays_eight_calls_at_a_time_give_one_digest(
    up: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up.reply("/search", _numbered())
    digests: list[str | None] = []

    class Kept(Recorder):
        def close(self, **how: Any) -> None:
            super().close(**how)
            digests.append(self.digest)

    def agent(transport: httpx.AsyncHTTPTransport, chance: int) -> Callable[[], Coroutine[Any, Any, list[Any]]]:
        dice = random.Random(chance)  # which of the eight comes first differs from run to run

        async def call(**asked: object) -> int:
            for _ in range(dice.randrange(4)):
                await asyncio.sleep(0)
            reply = await transport.handle_async_request(httpx.Request("POST", f"{up.url}/search", json=asked))
            return int(json.loads(await reply.aread())["n"])

        async def one(lane: int) -> tuple[int, int]:
            return await call(seat=lane), await call(to="Oslo")  # the second one is the same for all, word for word

        async def ask() -> list[Any]:
            return list(await asyncio.gather(*map(one, range(8))))

        return ask

    async def recorded() -> list[Any]:
        async with httpx.AsyncHTTPTransport(verify=False) as live:
            with flakestorm.record(tmp_path / "a.tape"):
                return await agent(live, 0)()

    before = asyncio.run(recorded())
    assert len({number for both in before for number in both}) == 16
    transport = httpx.AsyncHTTPTransport(verify=False)  # no connection is made, so that all loops may share it
    monkeypatch.setattr("flakestorm.api.replaying.Recorder", Kept)

    def play(chance: int) -> None:
        assert flakestorm.replay(tmp_path / "a.tape", agent(transport, chance)) == before  # each its own, each time

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(play, range(1000)))
    footer = Tape.open(tmp_path / "a.tape").footer
    assert footer is not None
    assert (len(digests), set(digests)) == (1000, {footer.digest})
    assert up.count() == 16


def test_nothing_goes_out_even_where_no_socket_can_be_connected(
    up: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flakestorm.record(tmp_path / "a.tape"):
        before = _whole(up)

    def blocked(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", blocked)
    monkeypatch.setattr(socket.socket, "connect_ex", blocked)
    assert flakestorm.replay(tmp_path / "a.tape", lambda: _whole(up)) == before
