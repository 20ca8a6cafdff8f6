"""A chat of many turns whose requests grow: what an agent asks, and the model that answers it.

`python -m bench.chat` prints `{"port": N}` and serves the model on loopback until it is ended. The rest is standard
library only: it also runs in the environments of peers. At 1,000 turns the requests come to 153 MB.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

__all__ = ["HEADERS", "MODEL", "PATH", "answer", "asked", "converse", "cpu_us", "peak_mb", "timed"]

PATH, MODEL = "/v1/messages", "claude-sonnet-4-5"
HEADERS = {"content-type": "application/json", "x-api-key": "sk-ant-none", "anthropic-version": "2023-06-01"}
LENGTH = 118  # of a text, in characters
WORDS = tuple(
    word
    for line in (
        "the of flight to Oslo from and cheapest ticket please book hotel near airport tomorrow morning evening train",
        "price euro window seat luggage check weather forecast rain sunny meeting report budget quarter review send",
        "email friday monday customer order refund status delivery address change confirm cancel number total summary",
    )
    for word in line.split()
)


def _text(who: str, turn: int) -> str:
    dice = sha256(f"{who} {turn}".encode()).digest()
    return f"{turn}: {' '.join(WORDS[byte % len(WORDS)] for byte in dice)}"[:LENGTH]


def answer(turn: int) -> bytes:
    """The body of the reply to the request of this turn, from 0, in Anthropic's form."""
    document = {
        "id": f"msg_01{sha256(b'%d' % turn).hexdigest()[:22]}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": _text("model", turn)}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 30 + 60 * turn, "cache_read_input_tokens": 0, "output_tokens": 25},
    }
    return json.dumps(document).encode()


def asked(turns: int) -> Iterator[bytes]:
    """The bodies of the requests, one after the other."""
    head, so_far = f'{{"max_tokens":1000,"model":"{MODEL}","messages":['.encode(), b""
    for turn in range(turns):
        so_far += b'%b{"role":"user","content":"%b"}' % (b"," if turn else b"", _text("user", turn).encode())
        yield head + so_far + b"]}"
        so_far += b',{"role":"assistant","content":"%b"}' % _text("model", turn).encode()


def cpu_us(ask: Callable[[bytes], bytes], turns: int) -> float:
    """Microseconds of process CPU per exchange, the making of the requests left out.

    Raises:
        AssertionError: a reply is not the model's.
    """
    return timed(ask, turns)[0] / turns * 1e6


def timed(ask: Callable[[bytes], bytes], turns: int) -> tuple[float, float]:
    """Seconds of process CPU that all exchanges took, and those that the making and checking of the texts took."""
    clock = time.process_time
    spent, began = 0.0, clock()
    for turn, body in enumerate(asked(turns)):
        at = clock()
        said = ask(body)
        spent += clock() - at
        assert said == answer(turn)
    return spent, clock() - began - spent


def converse(create: Callable[..., Any], turns: int) -> None:
    """The same chat by way of an SDK: `create` is `messages.create` of a client of Anthropic's.

    Raises:
        AssertionError: a reply is not the model's.
    """
    messages: list[dict[str, str]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": _text("user", turn)})
        said = create(model=MODEL, max_tokens=1000, messages=messages).content[0].text
        assert said == _text("model", turn)
        messages.append({"role": "assistant", "content": said})


def peak_mb() -> float:
    """The most memory that this process had, in MB. What `getrusage` says would include what its parent had when it
    was started."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    assert found
    return int(found[1]) / 1024


class Model(asyncio.Protocol):
    """One connection; requests have a Content-Length and come one after the other."""

    def connection_made(self, transport: Any) -> None:
        self._transport, self._pieces, self._missing = transport, list[bytes](), -1

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        if self._missing < 0:
            head, blank, rest = b"".join(self._pieces).partition(b"\r\n\r\n")
            if not blank:
                return
            length = head.lower().partition(b"\r\ncontent-length:")[2].split(b"\r\n", 1)[0]
            self._missing, self._pieces = int(length) - len(rest), [rest]
        else:
            self._missing -= len(data)
        if self._missing > 0:
            return
        turn = b"".join(self._pieces).count(b'"role":"user"') - 1
        self._pieces, self._missing = [], -1
        body = answer(turn)
        head = (
            f"HTTP/1.1 200 OK\r\nDate: Sun, 22 Nov 2026 10:{turn // 60 % 60:02}:{turn % 60:02} GMT\r\n"
            f"Content-Type: application/json\r\nrequest-id: req_011{sha256(body).hexdigest()[:21]}\r\n"
            f"anthropic-ratelimit-requests-limit: 4000\r\nanthropic-ratelimit-requests-remaining: {3999 - turn}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._transport.write(head.encode() + body)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Model, "127.0.0.1", 0, backlog=1024)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
