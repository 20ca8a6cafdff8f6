"""The seam in the `mcp` package: stdio servers that a client in this process starts.

What the client writes to the server's input and reads from its output goes through a `Relay`, so every message crosses
the pipeline of the run that opened the client; a client that was opened outside any run is left alone. (Servers that
are reached over HTTP cross by the HTTP seams.) The package offers no hook where it starts a server, so the one function
that does is wrapped; it is looked up at each call, wherever `stdio_client` itself has been imported to.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from flakestorm.boundary.mcp_relay import End, Relay
from flakestorm.boundary.patience import Patience
from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.session import Crossing, current
from flakestorm.errors import CallFailed

__all__ = ["patches"]

_START = "_create_platform_compatible_process"
_log = logging.getLogger("flakestorm.boundary")


def patches(lib: ModuleType) -> list[Patch]:
    """What to change in `mcp.client.stdio`."""
    if not hasattr(lib, _START):
        _log.warning("this version of the mcp package starts servers in another way; stdio servers are not seen")
        return []
    return [Patch(lib, _START, _started)]


def _started(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    anyio = importlib.import_module("anyio")
    process_class = _process_class(anyio)

    @functools.wraps(original)
    async def start(command: str, args: Any = (), *rest: Any, **named: Any) -> Any:
        process = await original(command, args, *rest, **named)
        crossing = current()
        if crossing is None:
            return process
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            _log.warning("the calls of an MCP client that runs on trio are not seen")
            return process
        return process_class(process, _Middle(anyio, process, _name(command, args), crossing))

    return start


def _name(command: str, args: Any) -> str:
    from flakestorm.boundary.mcp_stdio import name_of

    return name_of([command, *args])


class _Middle:
    """The relay of one server, and what its client has not read yet."""

    def __init__(self, anyio: Any, process: Any, name: str, crossing: Crossing) -> None:
        self._anyio, self._process = anyio, process
        self._gone = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
        self._unread: asyncio.Queue[bytes | None] = asyncio.Queue()  # None: the end
        self._ended = False
        self._rest = b""
        lane = crossing.lane()

        def seen() -> str:
            crossing.saw("mcp")
            return lane

        self.relay = Relay(
            End(f"stdio://{name}/client", self._to_client),
            End(f"stdio://{name}", self._to_server),
            pipeline=lambda: crossing.pipeline,
            lane=seen,
            patience=lambda: Patience(crossing.clock, known=False),
        )
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    def send(self, data: bytes) -> None:
        """The client writes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.relay.from_client(line)

    async def receive(self) -> bytes:
        """The client reads."""
        line = None if self._ended else await self._unread.get()
        if line is None:
            self._ended = True
            raise self._anyio.EndOfStream
        return line

    async def close(self) -> None:
        """The client reads no more."""
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        await self.relay.close()
        self._unread.put_nowait(None)

    async def _to_client(self, line: bytes) -> None:
        self._unread.put_nowait(line + b"\n")

    async def _to_server(self, line: bytes) -> None:
        try:
            await self._process.stdin.send(line + b"\n")
        except self._gone as error:
            raise CallFailed("reset", f"the MCP server does not read any more: {error!r}") from error

    async def _listen(self) -> None:
        rest = b""
        try:
            while True:
                *lines, rest = (rest + await self._process.stdout.receive()).split(b"\n")
                for line in lines:
                    self.relay.from_server(line)
        except (self._anyio.EndOfStream, *self._gone):
            await self.relay.server_gone("has ended")
            self._unread.put_nowait(None)


class _Input:
    """The server's input, as the client has it."""

    def __init__(self, real: Any, middle: _Middle) -> None:
        self._real, self._middle = real, middle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def send(self, item: bytes) -> None:
        self._middle.send(item)
        await asyncio.sleep(0)

    async def aclose(self) -> None:
        await asyncio.sleep(0)  # what was sent is on its way first
        await self._real.aclose()


class _Output:
    """The server's output, as the client has it."""

    def __init__(self, real: Any, middle: _Middle) -> None:
        self._real, self._middle = real, middle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._middle.receive()

    async def aclose(self) -> None:
        await self._middle.close()
        await self._real.aclose()


def _process_class(anyio: Any) -> type:
    """A process whose pipes are held; a subclass of anyio's own, because clients ask for one."""

    class CrossedProcess(anyio.abc.Process):  # type: ignore[misc]  # anyio is not imported for the types' sake
        def __init__(self, real: Any, middle: _Middle) -> None:
            self._real, self._middle = real, middle
            self._input, self._output = _Input(real.stdin, middle), _Output(real.stdout, middle)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        async def wait(self) -> int:
            return int(await self._real.wait())

        def terminate(self) -> None:
            self._real.terminate()

        def kill(self) -> None:
            self._real.kill()

        def send_signal(self, signal: Any) -> None:
            self._real.send_signal(signal)

        @property
        def pid(self) -> int:
            return int(self._real.pid)

        @property
        def returncode(self) -> int | None:
            code: int | None = self._real.returncode
            return code

        @property
        def stdin(self) -> Any:
            return self._input

        @property
        def stdout(self) -> Any:
            return self._output

        @property
        def stderr(self) -> Any:
            return self._real.stderr

        async def aclose(self) -> None:
            await self._middle.close()
            await self._real.aclose()

    return CrossedProcess
