"""Bounded views of what may be of any size: outputs, request bodies, replies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from flakestorm.reports.text import visible

__all__ = ["BODY_CHARS", "OUTPUT_CHARS", "excerpt", "exchange_view"]

OUTPUT_CHARS = 20_000
BODY_CHARS = 2_400


def excerpt(text: str, limit: int) -> str:
    """The text made visible, at most about `limit` characters: its beginning and, longer, its end.

    The end is favoured because the news in a conversation that is sent again and again stands there.
    """
    if len(text) <= limit:
        return visible(text)
    head = limit // 3
    tail = limit - head
    return f"{visible(text[:head])}\n… {len(text) - limit:,} characters left out …\n{visible(text[-tail:])}"


def exchange_view(exchange: Mapping[str, Any]) -> dict[str, Any]:
    """One exchange of `flakestorm-tape/1`, reduced to what a timeline shows. Keys that are missing read as empty."""
    request = _mapping(exchange.get("request"))
    return {
        "site": _short(exchange.get("site")),
        "kind": _short(exchange.get("kind")),
        "lane": _short(exchange.get("lane")),
        "request": f"{_short(request.get('method'))} {_short(request.get('url'))}".strip(),
        "asked": _body(request.get("body")),
        "reply": _reply(_mapping(exchange.get("reply"))),
        "world": _reply(exchange["world"]) if isinstance(exchange.get("world"), Mapping) else None,
        "sent": None if exchange.get("sent") is None else int(_number(exchange["sent"])),
        "error": _short(exchange.get("error"), 600),
        "faults": [
            [_short(fault.get("mode")), _short(fault.get("detail"))]
            for fault in _items(exchange.get("faults"))
            if isinstance(fault, Mapping)
        ],
        "t_ms": _number(exchange.get("t_ms")),
        "duration_ms": _number(exchange.get("duration_ms")),
    }


def _reply(reply: Mapping[str, Any]) -> dict[str, Any]:
    usage = _mapping(reply.get("usage"))
    counts = (usage.get("input"), usage.get("output"))
    chunks = reply.get("chunks")
    calls = [call for call in _items(reply.get("tool_calls")) if isinstance(call, Mapping)]
    said = reply.get("text") or ""
    if not said and not calls:  # not a model's reply, or one that says nothing: show the bytes
        said = reply.get("body") or "".join(part for part in _items(chunks) if isinstance(part, str))
    return {
        "status": int(_number(reply.get("status"))),
        "stream": bool(reply.get("stream")),
        "chunks": len(chunks) if isinstance(chunks, list) else int(_number(chunks)),
        "text": _body(said),
        "tools": [f"{_short(call.get('name'))}({_body(call.get('arguments'))})" for call in calls[:20]],
        "finish": _short(reply.get("finish")),
        "tokens": [_short(count) or "?" for count in counts] if any(count is not None for count in counts) else None,
        "end": _short(reply.get("end")),
        "error": _short(reply.get("error"), 600),
    }


def _body(body: Any) -> str:
    if body is None:
        return ""
    return excerpt(body if isinstance(body, str) else json.dumps(body, indent=1, ensure_ascii=False), BODY_CHARS)


def _short(value: Any, limit: int = 300) -> str:
    return "" if value is None else excerpt(str(value), limit)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e12 else 0.0  # a tape may say anything


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
