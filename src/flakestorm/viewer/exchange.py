"""One exchange, decoded: messages, tool calls, the chunks of a stream with their times, the faults that fired.

Everything is bounded, for a tape may hold bodies of any size, and every text is made visible before it leaves.
"""

from __future__ import annotations

from typing import Any

import orjson

from flakestorm.core.call import Headers
from flakestorm.core.ledger import Firing
from flakestorm.reports.excerpt import excerpt
from flakestorm.reports.text import one_line, visible
from flakestorm.tape.document import document, said
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.wire.base import ToolCall, Turn
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.protocols import wire_of

__all__ = ["BODY_CHARS", "CHUNKS", "TURNS", "decoded"]

BODY_CHARS = 24_000
TEXT_CHARS = 12_000
TURNS = 40
"""Messages of a request that are given, the newest, where no other number is asked for."""
CHUNKS = 400
"""Pieces of a stream that are given, the first."""


def decoded(exchange: Exchange, *, turns: int = TURNS) -> dict[str, Any]:
    """The exchange for a page.

    Args:
        exchange: as it is on the tape.
        turns: how many messages of the request, the newest.
    """
    plain = document(exchange)
    return {
        "n": exchange.n,
        "site": visible(str(exchange.site)),
        "kind": exchange.kind,
        "lane": visible(exchange.lane),
        "wire": visible(exchange.wire),
        "note": visible(exchange.note),
        "sent": exchange.sent,
        "t_ms": exchange.t_ms,
        "duration_ms": exchange.duration_ms,
        "faults": [_fault(firing) for firing in exchange.faults],
        "request": {
            "method": visible(exchange.method),
            "url": excerpt(exchange.url, 2000),
            "headers": _headers(exchange.headers),
            **_asked(exchange, turns),
            "body": _body(plain["request"]["body"]),
        },
        "reply": _reply(exchange, exchange.reply, plain["reply"]),
        "world": None if exchange.world is None else _reply(exchange, exchange.world, plain["world"]),
        "world_request": None if plain["world_request"] is None else _body(plain["world_request"]["body"]),
    }


def _asked(exchange: Exchange, turns: int) -> dict[str, Any]:
    """What the model was asked, message by message; nothing where it is no model's."""
    wire = wire_of(exchange.wire) if exchange.kind == "llm" else None
    if wire is None:
        return {"turns": [], "turns_total": 0, "tools": [], "model": ""}
    asked = wire.asked(decode_body(exchange.body, exchange.headers))
    return {
        "turns": [_turn(turn) for turn in asked.turns[max(len(asked.turns) - turns, 0) :]],
        "turns_total": len(asked.turns),
        "tools": [one_line(tool, 120) for tool in asked.tools[:200]],
        "model": one_line(asked.model, 120),
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "role": one_line(turn.role, 40),
        "text": excerpt(turn.text, TEXT_CHARS),
        "calls": [_call(call) for call in turn.tool_calls[:50]],
        "results": [
            {"name": one_line(result.name or result.call_id, 120), "text": excerpt(result.text, TEXT_CHARS)}
            for result in turn.tool_results[:50]
        ],
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": one_line(call.name, 120), "arguments": excerpt(call.arguments, TEXT_CHARS)}


def _reply(exchange: Exchange, reply: Recorded, plain: dict[str, Any]) -> dict[str, Any]:
    meaning = said(exchange, reply)
    chunks: list[str] = plain["chunks"]
    whole = "".join(chunks)
    return {
        "status": reply.status,
        "reason": one_line(reply.reason, 120),
        "headers": _headers(reply.headers),
        "stream": reply.stream,
        "end": reply.end,
        "error": None if reply.error is None else excerpt(reply.error, 2000),
        "understood": meaning is not None,
        "text": excerpt(meaning.text, TEXT_CHARS) if meaning else "",
        "calls": [_call(call) for call in meaning.tool_calls[:50]] if meaning else [],
        "finish": one_line(meaning.finish or "", 60) if meaning else "",
        "model": one_line(meaning.model, 120) if meaning else "",
        "said_error": excerpt(meaning.error, 2000) if meaning and meaning.error else "",
        "complete": meaning.complete if meaning else True,
        "usage": plain["usage"],
        "body": _body(_json(whole)),
        "chunks_total": len(chunks) if reply.stream else 0,
        "chunks": [
            {"at_ms": at, "bytes": len(chunk.encode("utf-8", "replace")), "text": excerpt(chunk, 600)}
            for chunk, at in zip(chunks[:CHUNKS], _times(reply, len(chunks)), strict=False)
        ]
        if reply.stream
        else [],
    }


def _times(reply: Recorded, count: int) -> list[float]:
    """When each piece came; a tape that tells fewer times repeats the last."""
    times = list(reply.at_ms[:count]) or [0.0]
    return times + [times[-1]] * (count - len(times))


def _fault(firing: Firing) -> dict[str, str]:
    return {"site": visible(str(firing.site)), "mode": visible(firing.mode), "detail": excerpt(firing.detail, 1000)}


def _headers(headers: Headers) -> list[list[str]]:
    return [[one_line(name, 120), excerpt(value, 600)] for name, value in headers[:100]]


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _body(body: Any) -> str:
    if body is None or isinstance(body, str):
        return excerpt(body or "", BODY_CHARS)
    return excerpt(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode(), BODY_CHARS)
