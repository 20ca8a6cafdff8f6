"""The official MCP client, by every way its calls cross the boundary."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import Any, Self

from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.types import ElicitResult

from flakestorm.boundary import inprocess
from mcp_support import Run, at_gateway, command, listening

__all__ = ["COMBINATIONS", "MODES", "SSE_IN_PROCESS", "WAYS", "Servers", "Way"]

MODES = ("2026-07-28", "legacy")


class Servers:
    """Real servers over HTTP, each started by the first test that wants it: `servers(transport)` is its URL."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, transport: str) -> str:
        if transport not in self._known:
            self._known[transport] = self._stack.enter_context(listening(transport))
        return self._known[transport]


async def _elicited(_: Any, __: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "blue"})


def _client(server: Any, mode: str) -> Client:
    return Client(server, mode=mode, elicitation_callback=_elicited)


@asynccontextmanager
async def _stdio_wrapped(run: Run, _: Any, mode: str) -> AsyncIterator[Client]:
    """As an agent that was launched: the variable holds the wrapped command line."""
    async with at_gateway(run, FLAKESTORM_MCP_W=command()) as channel:
        program, *args = shlex.split(channel.env["FLAKESTORM_MCP_W"])
        async with _client(StdioServerParameters(command=program, args=args, env=dict(channel.env)), mode) as client:
            yield client


@asynccontextmanager
async def _stdio_in_process(run: Run, _: Any, mode: str) -> AsyncIterator[Client]:
    program, *args = shlex.split(command())
    with inprocess.held(), run.line.active():
        async with _client(StdioServerParameters(command=program, args=args), mode) as client:
            yield client


def _http(transport: str, *, launched: bool) -> Any:
    @asynccontextmanager
    async def by_variable(run: Run, urls: Callable[[str], str], mode: str) -> AsyncIterator[Client]:
        async with at_gateway(run, FLAKESTORM_MCP_W=urls(transport)) as channel:
            url = channel.env["FLAKESTORM_MCP_W"]
            async with _client(sse_client(url) if transport == "sse" else url, mode) as client:
                yield client

    @asynccontextmanager
    async def in_process(run: Run, urls: Callable[[str], str], mode: str) -> AsyncIterator[Client]:
        url = urls(transport)
        with inprocess.held(), run.line.active():
            async with _client(sse_client(url) if transport == "sse" else url, mode) as client:
                yield client

    return by_variable if launched else in_process


Way = Callable[[Run, Any, str], AbstractAsyncContextManager[Client]]
WAYS: dict[str, Way] = {
    "stdio, wrapped": _stdio_wrapped,
    "stdio, in process": _stdio_in_process,
    "http, by variable": _http("streamable-http", launched=True),
    "http, in process": _http("streamable-http", launched=False),
    "http json, by variable": _http("json", launched=True),
    "sse, by variable": _http("sse", launched=True),
}
COMBINATIONS = [(way, mode) for way in WAYS for mode in MODES if not (way.startswith("sse") and mode != "legacy")]

SSE_IN_PROCESS: Way = _http("sse", launched=False)
"""What is answered on a connection that is not held; its requests are seen and can be lost."""
