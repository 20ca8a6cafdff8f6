"""A load client of its own process: `python -m bench.load PORT PATH COUNT CONCURRENCY`.

Raw keep-alive connections that send one chat request after the other; little more than bytes are looked at, so that
the client does not slow what it measures. Prints `{"p50_ms": ..., "per_s": ...}`. The first tenth is warm-up.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import Any

import uvloop

BODY = json.dumps(
    {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "You book flights. Be brief."},
            {"role": "user", "content": "Book me the earliest flight to Oslo tomorrow, please."},
        ],
    }
).encode()


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, load: Load) -> None:
        self._load, self._left, self._head = load, 0, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        if self._load.take():
            self._sent = time.perf_counter()
            self._transport.write(self._load.request)
        else:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if not self._left:
            head, blank, rest = (self._head + data).partition(b"\r\n\r\n")
            if not blank:
                self._head = head
                return
            self._head, data = b"", rest
            if not head.startswith(b"HTTP/1.1 200"):
                self._load.fail(f"the answer was {head[:200]!r}")
            at = head.lower().index(b"\r\ncontent-length:") + 17
            self._left = int(head[at:].split(b"\r\n", 1)[0])
        self._left -= len(data)
        if not self._left:
            self._load.done(time.perf_counter() - self._sent)
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._load.leave()


class Load:
    """So many requests, by however many clients."""

    def __init__(self, request: bytes, count: int, clients: int) -> None:
        self.request, self._to_send, self._clients = request, count, clients
        self._warm_up, self._seconds = count // 10, list[float]()
        self._began = 0.0
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self) -> bool:
        self._to_send -= 1
        return self._to_send >= 0

    def done(self, seconds: float) -> None:
        if self._warm_up:
            self._warm_up -= 1
            self._began = time.perf_counter()
        else:
            self._seconds.append(seconds)
            self._last = time.perf_counter()

    def fail(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_exception(SystemExit(why))

    def leave(self) -> None:
        self._clients -= 1
        if not self._clients and not self._ended.done():
            if self._to_send >= 0:
                self.fail("the server closed the connections")
            else:
                self._ended.set_result(None)

    async def result(self) -> dict[str, float]:
        await asyncio.wait_for(self._ended, 100)
        per_s = len(self._seconds) / (self._last - self._began)
        return {"p50_ms": statistics.median(self._seconds) * 1000, "per_s": per_s}


async def main(port: int, path: str, count: int, clients: int) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer sk-none\r\nAccept: application/json\r\nUser-Agent: OpenAI/Python\r\n"
        f"Content-Length: {len(BODY)}\r\n\r\n"
    )
    load = Load(head.encode() + BODY, count, clients)
    loop = asyncio.get_running_loop()
    for _ in range(clients):
        await loop.create_connection(lambda: Client(load), "127.0.0.1", port)
    print(json.dumps(await load.result()))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
