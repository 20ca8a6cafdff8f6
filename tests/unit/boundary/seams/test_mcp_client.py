import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any

import anyio
import pytest

from flakestorm.boundary.seams.mcp_client import patches
from mcp_support import PLAIN, Run


@contextmanager
def library() -> Iterator[Any]:
    """What the seam needs of `mcp.client.stdio`, with the seam in."""
    lib = ModuleType("mcp.client.stdio")

    async def start(command: str, args: list[str], env: Any = None) -> Any:
        return await anyio.open_process([command, *args], env=env, stderr=None)

    lib._create_platform_compatible_process = start  # type: ignore[attr-defined]
    (patch,) = patches(lib)
    patch.apply()
    try:
        yield lib
    finally:
        patch.revert()
    assert lib._create_platform_compatible_process is start  # type: ignore[attr-defined]


@asynccontextmanager
async def server(lib: Any) -> AsyncIterator[Any]:
    process = await lib._create_platform_compatible_process(sys.executable, ["-I", str(PLAIN)])
    try:
        yield process
    finally:
        await process.stdin.aclose()
        await asyncio.wait_for(process.wait(), 60)
        await process.stdout.aclose()
        await process.aclose()


def call(tool: str, *, key: int = 1, **given: Any) -> bytes:
    params = {"name": tool, "arguments": given, "_meta": {"progressToken": key}}
    return json.dumps({"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": params}).encode() + b"\n"


async def hear(process: Any) -> Any:
    return json.loads(await asyncio.wait_for(process.stdout.receive(), 60))


async def test_a_servers_pipes_cross() -> None:
    run = Run(({"tool": "echo", "mode": "error", "calls": [2]},))
    with library() as lib, run.line.active():
        async with server(lib) as process:
            assert isinstance(process, anyio.abc.Process)
            assert process.pid > 0
            data = call("echo", text="a")
            await process.stdin.send(data[:20])  # a line may come in pieces
            await process.stdin.send(data[20:])
            assert (await hear(process))["result"]["content"][0]["text"] == "a"
            await process.stdin.send(call("echo", key=2, text="b") + call("slow", key=3))
            heard = [await hear(process) for _ in range(3)]
            assert sorted(str(each.get("id", "progress")) for each in heard) == ["2", "3", "progress"]
            assert process.returncode is None
        assert process.returncode == 0
    assert run.names == ["echo", "echo", "slow"]
    assert [exchange.sent for exchange in run.exchanges] == [1, 0, 1]
    assert run.exchanges[0].url == f"stdio://{PLAIN.name}"


async def test_outside_a_run_nothing_is_in_between() -> None:
    with library() as lib:
        async with server(lib) as process:
            assert type(process).__name__ != "CrossedProcess"
            await process.stdin.send(call("echo", text="a"))
            assert (await hear(process))["result"]["content"][0]["text"] == "a"


async def test_a_server_that_ends_fails_its_calls_and_ends_its_output() -> None:
    run = Run()
    with library() as lib, run.line.active():
        async with server(lib) as process:
            await process.stdin.send(call("die"))
            assert "has ended" in (await hear(process))["error"]["message"]
            for _ in range(2):
                with pytest.raises(anyio.EndOfStream):
                    await asyncio.wait_for(process.stdout.receive(), 60)
    assert run.named("die").reply.end == "broken"


async def test_a_client_that_leaves_ends_its_calls() -> None:
    run = Run(({"tool": "echo", "mode": "slow", "delay_ms": 600_000},))
    with library() as lib, run.line.active():
        async with server(lib) as process:
            await process.stdin.send(call("echo", text="a"))
    assert run.named("echo").reply.end == "client left"


def test_a_client_on_trio_is_left_alone_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    run, real = Run(), object()
    lib = ModuleType("mcp.client.stdio")

    async def start(command: str, args: list[str]) -> object:
        return real

    lib._create_platform_compatible_process = start  # type: ignore[attr-defined]
    (patch,) = patches(lib)
    patch.apply()
    with run.line.active(), pytest.raises(StopIteration) as done:  # no asyncio loop runs
        lib._create_platform_compatible_process("server", []).send(None)  # type: ignore[attr-defined]
    assert done.value.value is real
    assert "trio" in caplog.text


def test_another_version_of_the_package_is_left_alone_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert patches(ModuleType("mcp.client.stdio")) == []
    assert "not seen" in caplog.text
