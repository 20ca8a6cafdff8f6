"""Every HTTP library the in-process seams hold, behind one small face, and stages that watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import httpx
import httpx2
import requests
import urllib3

from flakestorm.boundary import inprocess
from flakestorm.boundary.session import Crossing
from flakestorm.core.call import PULL, Call, Chunks, Reply
from flakestorm.core.pipeline import Flow, Interceptor, chain

__all__ = ["CLIENTS", "Client", "Watcher", "crossing"]

Got = tuple[int, dict[str, str], bytes]
OnPiece = Callable[[bytes], bool]
"""Is given each piece as it arrives; False leaves the stream there."""


@dataclass
class Watcher:
    """A stage that writes down what passes: calls, replies' bodies as they end, and how they ended."""

    calls: list[Call] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def __call__(self, call: Call) -> Flow:
        self.calls.append(call)
        try:
            reply = yield call
        except BaseException as error:
            self.failures.append(error)
            raise
        assert isinstance(reply, Reply)
        self.statuses.append(reply.status)
        return reply.pipe(self._watch)

    def _watch(self) -> Chunks:
        seen: list[bytes] = []
        end = "eof"
        try:
            while (chunk := (yield PULL)) is not None:
                seen.append(chunk)
                yield chunk
        except GeneratorExit:
            end = "client left"
            raise
        except BaseException as error:
            end = "broken"
            self.failures.append(error)
            raise
        finally:
            self.bodies.append(b"".join(seen))
            self.ends.append(end)


@contextmanager
def crossing(*stages: Interceptor) -> Iterator[Crossing]:
    """The seams are in, and this context's calls pass these stages."""
    line = Crossing("r-0001", chain(*stages))
    with inprocess.held(), line.active():
        yield line


@dataclass(frozen=True)
class Client:
    """One library.

    Args:
        fetch: (method, url, timeout_s, body) -> status, headers (lower case), body.
        stream: (url, timeout_s, on_piece): GETs and hands pieces over as they arrive.
    """

    name: str
    fetch: Callable[[str, str, float, bytes | None], Got]
    stream: Callable[[str, float, OnPiece], None]

    def get(self, url: str, timeout_s: float = 20.0) -> Got:
        return self.fetch("GET", url, timeout_s, None)

    def post(self, url: str, body: bytes, timeout_s: float = 20.0) -> Got:
        return self.fetch("POST", url, timeout_s, body)


def _httpx(lib: Any) -> Client:
    limits = lib.Limits(max_connections=1)  # and verify=False: nothing here is TLS, and reading CA files takes long

    def fetch(method: str, url: str, timeout_s: float, body: bytes | None) -> Got:
        with lib.Client(verify=False, timeout=timeout_s, follow_redirects=True, limits=limits) as client:
            reply = client.request(method, url, content=body)
            return reply.status_code, dict(reply.headers), reply.content

    def stream(url: str, timeout_s: float, on_piece: OnPiece) -> None:
        with lib.Client(verify=False, timeout=timeout_s, limits=limits) as client, client.stream("GET", url) as reply:
            for piece in reply.iter_raw():
                if not on_piece(piece):
                    return

    return Client(lib.__name__, fetch, stream)


def _httpx_async(lib: Any) -> Client:
    limits = lib.Limits(max_connections=1)

    async def fetch(method: str, url: str, timeout_s: float, body: bytes | None) -> Got:
        async with lib.AsyncClient(verify=False, timeout=timeout_s, follow_redirects=True, limits=limits) as client:
            reply = await client.request(method, url, content=body)
            return reply.status_code, dict(reply.headers), reply.content

    async def stream(url: str, timeout_s: float, on_piece: OnPiece) -> None:
        async with (
            lib.AsyncClient(verify=False, timeout=timeout_s, limits=limits) as client,
            client.stream("GET", url) as reply,
        ):
            async for piece in reply.aiter_raw():
                if not on_piece(piece):
                    return

    return Client(
        f"{lib.__name__}-async",
        lambda *args: asyncio.run(fetch(*args)),
        lambda *args: asyncio.run(stream(*args)),
    )


def _requests() -> Client:
    def fetch(method: str, url: str, timeout_s: float, body: bytes | None) -> Got:
        with requests.Session() as session:
            reply = session.request(method, url, timeout=timeout_s, data=body)
            return reply.status_code, {k.lower(): v for k, v in reply.headers.items()}, reply.content

    def stream(url: str, timeout_s: float, on_piece: OnPiece) -> None:
        with requests.Session() as session, session.get(url, timeout=timeout_s, stream=True) as reply:
            for piece in reply.iter_content(1024):
                if not on_piece(piece):
                    return

    return Client("requests", fetch, stream)


def _urllib3() -> Client:
    def fetch(method: str, url: str, timeout_s: float, body: bytes | None) -> Got:
        retries = urllib3.Retry(connect=False, read=False, redirect=3)
        with urllib3.PoolManager(maxsize=1, block=True) as pool:
            reply = pool.request(method, url, timeout=timeout_s, body=body, retries=retries)
            return reply.status, {k.lower(): v for k, v in reply.headers.items()}, reply.data

    def stream(url: str, timeout_s: float, on_piece: OnPiece) -> None:
        with urllib3.PoolManager(maxsize=1, block=True) as pool:
            reply = pool.request("GET", url, timeout=timeout_s, preload_content=False, retries=False)
            try:
                for piece in reply.stream(1024):
                    if not on_piece(piece):
                        return
            finally:
                reply.close()
                reply.release_conn()

    return Client("urllib3", fetch, stream)


def _aiohttp() -> Client:
    def session(timeout_s: float) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(sock_read=timeout_s)
        return aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=1))

    async def fetch(method: str, url: str, timeout_s: float, body: bytes | None) -> Got:
        async with session(timeout_s) as client, client.request(method, url, data=body) as reply:
            return reply.status, {k.lower(): v for k, v in reply.headers.items()}, await reply.read()

    async def stream(url: str, timeout_s: float, on_piece: OnPiece) -> None:
        async with session(timeout_s) as client, client.get(url) as reply:
            async for piece in reply.content.iter_any():
                if not on_piece(piece):
                    return

    return Client("aiohttp", lambda *args: asyncio.run(fetch(*args)), lambda *args: asyncio.run(stream(*args)))


CLIENTS = (
    _httpx(httpx),
    _httpx_async(httpx),
    _httpx(httpx2),
    _httpx_async(httpx2),
    _requests(),
    _urllib3(),
    _aiohttp(),
)
