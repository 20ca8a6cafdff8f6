"""A model provider that costs next to nothing: fixed replies in the shapes of OpenAI and Anthropic, on loopback.

`python -m bench.upstream` prints `{"port": N}` and serves until it is ended. A request whose body asks for a stream is
sent its first event after 50 ms and ten more, 10 ms apart.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["FIRST_S", "NEXT_S", "announced", "run"]

FIRST_S, NEXT_S, EVENTS = 0.05, 0.01, 10
WORDS = "The earliest flight to Oslo leaves at nine and costs 120 euros. Shall I book it?"

OPENAI = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1760000000,
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 19, "completion_tokens": 20, "total_tokens": 39},
}
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": WORDS}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 19, "output_tokens": 20},
}


def _whole(document: dict[str, Any]) -> bytes:
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nrequest-id: req_1\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


def _chunk(text: str) -> bytes:
    data = text.encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def _openai_event(text: str) -> bytes:
    delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    event = {**OPENAI, "object": "chat.completion.chunk", "choices": [delta], "usage": None}
    return _chunk(f"data: {json.dumps(event)}\n\n")


def _anthropic_event(kind: str, **rest: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **rest})}\n\n"


def _anthropic_text(text: str) -> str:
    return _anthropic_event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_ANTHROPIC_START = _anthropic_event(
    "message_start", message={**ANTHROPIC, "content": [], "stop_reason": None}
) + _anthropic_event("content_block_start", index=0, content_block={"type": "text", "text": ""})
_ANTHROPIC_STOP = (
    _anthropic_event("content_block_stop", index=0)
    + _anthropic_event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 20})
    + _anthropic_event("message_stop")
)
OPENAI_STREAM = (_openai_event("The"), _openai_event(" flight"), _chunk("data: [DONE]\n\n"))
ANTHROPIC_STREAM = (
    _chunk(_ANTHROPIC_START + _anthropic_text("The")),
    _chunk(_anthropic_text(" flight")),
    _chunk(_ANTHROPIC_STOP),
)
OPENAI_WHOLE, ANTHROPIC_WHOLE = _whole(OPENAI), _whole(ANTHROPIC)


class Upstream(asyncio.Protocol):
    """One connection; requests have a Content-Length and come one after the other."""

    def connection_made(self, transport: Any) -> None:
        self._transport, self._buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        low = head.lower()
        at = low.find(b"\r\ncontent-length:")
        length = int(low[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        anthropic = b"/messages" in head.split(b"\r\n", 1)[0]
        if b'"stream":true' in rest.replace(b" ", b""):
            self._begin(ANTHROPIC_STREAM if anthropic else OPENAI_STREAM)
        else:
            self._transport.write(ANTHROPIC_WHOLE if anthropic else OPENAI_WHOLE)

    def _begin(self, stream: tuple[bytes, bytes, bytes]) -> None:
        first, again, last = stream
        later, write = asyncio.get_running_loop().call_later, self._transport.write
        write(STREAM_HEAD)
        later(FIRST_S, write, first)
        for event in range(1, EVENTS + 1):
            later(FIRST_S + event * NEXT_S, write, again)
        later(FIRST_S + (EVENTS + 1) * NEXT_S, write, last + b"0\r\n\r\n")


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=1024)
    await announced(server)


async def announced(server: asyncio.Server) -> None:
    """Print where it listens, and serve."""
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run this program until it is ended."""
    import uvloop

    try:
        uvloop.run(main())
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    run(main)
