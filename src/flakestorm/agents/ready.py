"""Ports, and waiting until a launched agent can be asked."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flakestorm.agents.client import ExchangeFailed, exchange
from flakestorm.errors import AgentUnreachable, ConfigError

if TYPE_CHECKING:  # few agents are started
    from flakestorm.agents.process import Program

__all__ = ["READY_LIMIT_S", "address", "free_port", "listening", "until_ready"]

READY_LIMIT_S = 30.0
_PAUSE_S = 0.05
_PROBE_S = 5.0
_PORTS = {"http": 80, "https": 443}

_given: deque[int] = deque(maxlen=512)


def free_port() -> int:
    """A loopback port nobody listens on, and that was not given out lately (its taker may still be starting)."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in _given:
            _given.append(port)
            return port


def address(url: str, *, key: str) -> tuple[str, int]:
    """Host and port of an HTTP URL.

    Raises:
        ConfigError: it is not an HTTP URL; `key` says where it was written.
    """
    try:
        parsed = urlsplit(url)
        host, port = parsed.hostname, parsed.port or _PORTS.get(parsed.scheme)
    except ValueError:
        host = port = None
    if not host or not port or parsed.scheme not in _PORTS:
        raise ConfigError(f"{url!r} is not an HTTP URL such as http://127.0.0.1:8000/invoke", key=key)
    return host, port


async def listening(host: str, port: int) -> bool:
    """Whether somebody accepts connections there."""
    try:
        async with asyncio.timeout(_PROBE_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def until_ready(program: Program, ready: str | int | None, endpoint: str, *, limit_s: float) -> None:
    """Wait until a launched agent can be asked.

    Args:
        program: the agent; when it ends, waiting ends.
        ready: a URL that must answer with a status below 500, a port that must accept connections, or None for the
            endpoint's own host and port.
        endpoint: the agent's endpoint.
        limit_s: how long to wait, in seconds.

    Raises:
        AgentUnreachable: the agent ended, or is not ready in time; the message has its last lines.
    """
    check = _check(ready, endpoint)
    seen = ""
    try:
        async with asyncio.timeout(limit_s):
            while program.running:
                seen = await check()
                if not seen and program.running:
                    return
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError:
        lines = program.last_lines()
        printed = f"; its last lines:\n{lines}" if lines else "; it printed nothing"
        raise AgentUnreachable(
            f"the agent was not ready within {limit_s:g} s: {seen or 'no answer'}{printed}"
        ) from None
    raise AgentUnreachable(f"the agent ended before it was ready: it {program.ending()}")


def _check(ready: str | int | None, endpoint: str) -> Callable[[], Awaitable[str]]:
    """A check that says what is still missing, or nothing when the agent is ready."""
    if isinstance(ready, str) and not ready.isdecimal():
        url = ready
        address(url, key="agent.ready")

        async def answers() -> str:
            try:
                async with asyncio.timeout(_PROBE_S):
                    reply = await exchange("GET", url, limit_bytes=0)
            except TimeoutError:
                return f"{url} does not answer within {_PROBE_S:g} s"
            except ExchangeFailed as error:
                return f"{url} does not answer ({error})"
            return "" if reply.status < 500 else f"{url} answers with status {reply.status}"

        return answers

    host, port = address(endpoint, key="agent.endpoint")
    if ready is not None:
        host, port = "127.0.0.1", int(ready)

    async def accepts() -> str:
        return "" if await listening(host, port) else f"nothing listens on {host}:{port}"

    return accepts
