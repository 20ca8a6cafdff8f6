import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from flakestorm.boundary import mcp_door
from gateway_support import Held, held
from mcp_support import Run

ASKED = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'


class Wrapper:
    """What `mcp_stdio.py` is to the door, without the processes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        self._reader, self.writer, self.head = reader, writer, head

    def say(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frame + b"\n" for frame in frames))

    async def hear(self) -> bytes:
        return (await asyncio.wait_for(self._reader.readline(), 10)).rstrip(b"\n")


@asynccontextmanager
async def wrapper(gate: Held, name: str = "w", token: str | None = None) -> AsyncIterator[Wrapper]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.gateway.port)
    place = gate.url if token is None else f"http://x/r/{token}"
    path = "/" + place.split("/", 3)[3]
    writer.write(f"GET {path}/m/{name} HTTP/1.1\r\nHost: {gate.authority}\r\n\r\n".encode())
    try:
        yield Wrapper(reader, writer, await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10))
    finally:
        writer.close()
        await writer.wait_closed()


async def test_lines_of_both_ends_meet_in_the_runs_pipeline() -> None:
    run = Run()
    async with held(run.pipeline) as gate, wrapper(gate, "my%20server") as far:
        assert far.head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"x-flakestorm-origin: openai https://api.openai.com\r\n" in far.head
        far.say(b"c" + ASKED)
        assert await far.hear() == b"s" + ASKED
        far.say(b"s" + ANSWER)
        assert await far.hear() == b"c" + ANSWER
    assert (run.names, run.exchanges[0].url, run.exchanges[0].lane) == (["echo"], "stdio://my server", "1")


async def test_outside_a_run_lines_pass_unrecorded() -> None:
    async with held(bound=False) as gate, wrapper(gate) as far:
        far.say(b"c" + ASKED, b"s" + ANSWER)
        assert [await far.hear(), await far.hear()] == [b"s" + ASKED, b"c" + ANSWER]
        assert gate.watch.seen == []


async def test_the_ends_are_ended_after_what_was_said() -> None:
    async with held() as gate, wrapper(gate) as far:
        far.say(b"c" + ASKED, b"C")
        assert [await far.hear(), await far.hear()] == [b"s" + ASKED, b"C"]
        far.say(b"S7")
        failed = await far.hear()
        assert json.loads(failed[1:])["error"]["message"].endswith("has ended (exit code 7)")
        assert await far.hear() == b"S7"


async def test_a_wrapper_that_goes_ends_its_calls() -> None:
    run = Run()
    async with held(run.pipeline) as gate:
        async with wrapper(gate) as far:
            far.say(b"c" + ASKED)
            await far.hear()
        seen = gate.watch.seen[0]
        await seen.over()
    assert run.named("echo").reply.end == "client left"


async def test_a_message_that_is_too_long_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_door, "MAX_LINE_BYTES", 1000)
    async with held() as gate, wrapper(gate) as far:
        far.say(b"c" + b"x" * 2000)
        assert await far.hear() == b""


async def test_an_unknown_token_is_refused_in_words() -> None:
    async with held() as gate, wrapper(gate, token="nobody") as far:
        assert far.head.startswith(b"HTTP/1.1 403 ")
