"""Helpers for tests of the gateway and the shim: a gateway on the test's loop, and real programs launched on it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from flakestorm.boundary.channel import Channel, open_channel
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.intercept import interception
from flakestorm.boundary.session import Crossing
from flakestorm.core.call import PULL, Call, Chunks, Reply
from flakestorm.core.pipeline import Flow, Interceptor, chain

__all__ = ["Held", "Seen", "Watch", "held", "run_python"]

PATIENCE_S = 60.0
"""How long a launched program may take before the test is declared stuck."""


@dataclass
class Seen:
    """One call as it crossed, and what became of it."""

    call: Call
    reply: Reply | None = None
    error: BaseException | None = None
    chunks: list[bytes] = field(default_factory=list)
    end: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    async def over(self) -> str:
        """How its reply ended: `eof`, `client left` or `broken`; waits until it has."""
        await asyncio.wait_for(self.ended.wait(), PATIENCE_S)
        return self.end


class Watch:
    """A stage that writes down every call and what passed back, as a recorder does."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.changed = asyncio.Event()

    def __call__(self, call: Call) -> Flow:
        seen = Seen(call)
        self.seen.append(seen)
        self.changed.set()
        try:
            reply = yield call
        except BaseException as error:
            seen.error, seen.end = error, _end(error)
            seen.ended.set()
            raise
        assert reply is not None
        seen.reply = reply

        def tee() -> Chunks:
            try:
                while (chunk := (yield PULL)) is not None:
                    seen.chunks.append(chunk)
                    self.changed.set()
                    yield chunk
                seen.end = "eof"
            except BaseException as error:
                seen.error, seen.end = error, _end(error)
                raise
            finally:
                seen.ended.set()

        return reply.pipe(tee)

    @property
    def urls(self) -> list[str]:
        return [seen.call.url for seen in self.seen]

    async def until(self, count: int) -> None:
        """Wait until this many calls have been seen."""
        while len(self.seen) < count:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), PATIENCE_S)


def _end(error: BaseException) -> str:
    """Closed and cancelled generators mean that the client has left; it is the world that breaks with exceptions."""
    return "broken" if isinstance(error, Exception) else "client left"


@dataclass
class Held:
    """A gateway with one channel, bound to one crossing."""

    gateway: Gateway
    channel: Channel
    watch: Watch

    @property
    def url(self) -> str:
        return self.channel.env["FLAKESTORM_GATEWAY"]

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.gateway.port}"

    def path(self, rest: str) -> str:
        """That of OpenAI's base URL, and what follows it."""
        return f"{self.url.partition(self.authority)[2]}/p/openai{rest}"

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """One to the gateway."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError):  # the gateway may have reset it
                await writer.wait_closed()


@asynccontextmanager
async def held(*stages: Interceptor, bound: bool = True, intercept: bool = False, **env: str) -> AsyncIterator[Held]:
    """A running gateway. The stages stand outside the watch, so it sees what the world said.

    Args:
        bound: whether a crossing is bound for the whole time.
        intercept: whether the gateway looks into tunnels.
        env: the agent's own environment, which names the upstreams.
    """
    gateway, watch = Gateway(interception=interception() if intercept else None), Watch()
    await gateway.start()
    try:
        channel = open_channel(gateway, env, {})
        if bound:
            with channel.bind(Crossing("r-0001", chain(*stages, watch))):
                yield Held(gateway, channel, watch)
        else:
            yield Held(gateway, channel, watch)
    finally:
        await gateway.close()


async def run_python(held: Held, code: str, *args: str, options: Sequence[str] = (), **env: str) -> str:
    """Run a program in a Python of its own, as a launched agent; its standard output.

    Raises:
        AssertionError: it failed, or wrote anything to stderr.
    """
    environment = {key: value for key, value in os.environ.items() if not key.upper().endswith("_PROXY")}
    environment |= {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", **held.channel.env, **env}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *options, "-c", code, *args,
        env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    assert err == b"", err.decode()
    return out.decode()
