"""Help for testing agents: a boundary that only keeps books, small agent programs, and a way to see a process end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FunctionType
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from flakestorm.config.model import Config
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.pipeline import Interceptor

current_line: ContextVar[str | None] = ContextVar("current_line", default=None)
"""The run whose line is active in this context."""


def error(answer: Answer) -> AgentError:
    """Why there is no answer."""
    assert answer.error is not None, answer
    assert answer.output == ""
    return answer.error


class FakeLine:
    def __init__(self, run: str = "r-0001", *, calls: int = 0) -> None:
        self.run, self.calls = run, calls
        self.remarks: list[str] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        token = current_line.set(self.run)
        try:
            yield
        finally:
            current_line.reset(token)


class FakeChannel:
    """Refuses to serve two lines at once, or any after it was closed."""

    def __init__(self, number: int) -> None:
        self.env: Mapping[str, str] = {"FLAKESTORM_RUN": f"token-{number}", "GIVEN": "by the channel"}
        self.bound: str | None = None
        self.runs: list[str] = []
        self.closed = False
        self.quiet = True

    @contextmanager
    def bind(self, line: FakeLine) -> Iterator[None]:
        assert not self.closed, "bound after it was closed"
        assert self.bound is None, f"{line.run} while {self.bound} is still bound"
        self.bound = line.run
        self.runs.append(line.run)
        try:
            yield
        finally:
            self.bound = None

    async def settled(self, *, gone: bool = False) -> bool:
        return self.quiet

    def close(self) -> None:
        self.closed = True


class FakeTool:
    """A function that says on whose line it was called; wrapped unless it can be held from within."""

    def __init__(self, name: str, function: Callable[..., Any], *, pairs: bool) -> None:
        self.name, self.pairs, self.released = name, pairs, 0
        self.function = function if isinstance(function, FunctionType) else lambda *args: (name, function(*args))

    def release(self) -> None:
        self.released += 1


class FakeBoundary:
    def __init__(self) -> None:
        self.held: list[FakeTool] = []
        self.channels: list[FakeChannel] = []
        self.envs: list[Mapping[str, str]] = []
        self.shared: FakeChannel | None = None

    @property
    def tools(self) -> list[str]:
        return [tool.name for tool in self.held]

    def tool(self, name: str, function: Callable[..., Any], *, pairs: bool = False) -> FakeTool:
        self.held.append(FakeTool(name, function, pairs=pairs))
        return self.held[-1]

    def line(self, run: str, pipeline: Interceptor | None = None, clock: object = None) -> FakeLine:
        return FakeLine(run)

    async def channel(self, env: Mapping[str, str]) -> FakeChannel:
        self.envs.append(env)
        self.channels.append(FakeChannel(len(self.channels)))
        return self.channels[-1]

    async def standing(self) -> FakeChannel | None:
        return self.shared

    async def close(self) -> None:
        pass


def config(folder: Path, *, retries: int = 0, **agent: Any) -> Config:
    """A configuration with this agent block. `timeout` may be shorter than a user may ask for, to keep tests quick."""
    timeout = agent.pop("timeout", 30000)
    made = Config.of({"version": "2.0", "agent": agent, "golden_prompts": ["hello"], "advanced": {"retries": retries}})
    return replace(made, agent=replace(made.agent, timeout=timeout)).at(str(folder))


@asynccontextmanager
async def serving(handler: Any) -> AsyncIterator[str]:
    """An aiohttp handler on a loopback port; yields `http://127.0.0.1:PORT`."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talking(script: Any) -> AsyncIterator[str]:
    """A raw TCP server: `script(reader, writer)` per connection; yields `http://127.0.0.1:PORT`."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


class Lifelines:
    """Where programs connect while they live: a connection that breaks is a process that has ended."""

    def __init__(self) -> None:
        self._arrived: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        self.port = 0

    async def next(self) -> asyncio.StreamReader:
        """The next program to connect; reading from it ends when the program does."""
        async with asyncio.timeout(20):
            reader, _ = await self._arrived.get()
        return reader

    @staticmethod
    async def broken(reader: asyncio.StreamReader) -> bool:
        """Wait for the end of a program that connected."""
        async with asyncio.timeout(20):
            try:
                return await reader.read() == b""
            except ConnectionResetError:
                return True


@asynccontextmanager
async def lifelines() -> AsyncIterator[Lifelines]:
    lines = Lifelines()
    writers: list[asyncio.StreamWriter] = []

    async def arrive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await lines._arrived.put((reader, writer))

    server = await asyncio.start_server(arrive, "127.0.0.1", 0)
    lines.port = server.sockets[0].getsockname()[1]
    try:
        yield lines
    finally:
        for writer in writers:
            writer.close()
        server.close()
        await server.wait_closed()


HOLD = "import socket,sys\ns = socket.create_connection(('127.0.0.1', {port}))\ns.recv(1)\n"
"""A program that connects to a lifeline and stays."""

ECHO_AGENT = '''
"""Answers {"output": ...}; what it is told decides how it behaves."""
import json, os, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

state = {"runs": 0}

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.say(200, {"ready": True})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/reset":
            state["runs"] = 0
            return self.say(204, None)
        if self.path == "/bad-reset":
            return self.say(500, {"detail": "the store is locked"})
        prompt = json.loads(body)["input"]
        state["runs"] += 1
        if prompt.startswith("die"):
            print("about to die of", prompt, file=sys.stderr, flush=True)
            os._exit(7)
        if prompt.startswith("hang"):
            subprocess.Popen([sys.executable, "-c", os.environ["HOLD"]])
            threading.Event().wait()
        self.say(200, {"output": {"echo": prompt, "runs": state["runs"], "pid": os.getpid(),
                                  "token": os.environ.get("FLAKESTORM_RUN")}})

    def say(self, status, data):
        body = b"" if data is None else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
'''

LAUNCH = {"start": [sys.executable, "agent.py", "{port}"], "endpoint": "http://127.0.0.1:{port}/ask"}
"""The echo agent on a port of its own."""


def echo_agent(folder: Path) -> None:
    (folder / "agent.py").write_text(ECHO_AGENT)
