"""What a recorded reply looks like, by itself and beside healthy ones: the mode of the fault that would make it so.

Nothing here looks at what the tape says was injected, so a fault of the world's own is told in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from flakestorm.core.call import header
from flakestorm.patterns.refusal import is_refusal
from flakestorm.tape.document import said
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.wire.base import Said
from flakestorm.wire.encoding import decode_body

__all__ = ["broken", "looks_like"]

_CUT = ("length", "max_tokens", "max_output_tokens", "incomplete", "max_tokens_exceeded")
_FILTERED = ("content_filter", "safety", "recitation", "content_filtered", "blocklist", "prohibited_content")
_ORDER = re.compile(
    r"(?i)\b(ignore|disregard|forget|override)\b.{0,40}\b(instruction|prompt|rule|previous|above|prior)|"
    r"\b(system|assistant)\s*:|<\s*(system|important|instruction)|\b(you must|do not tell|instead of)\b"
)
_MUCH_LONGER, _MUCH_SLOWER, _LATE_MS = 1.5, 4.0, 200.0

BROKEN = frozenset(
    {
        "timeout", "connection_reset", "error", "malformed", "rate_limit", "overloaded", "server_error", "stream_cut",
        "truncated_response", "content_filter", "bad_tool_call", "garbage",
    }
)  # fmt: skip
"""The modes that leave no valid answer behind. What else a reply looks like may be what tool or model meant to say."""


def broken(mode: str) -> bool:
    """Whether a reply that looks like this is no answer at all."""
    return mode in BROKEN


def looks_like(exchange: Exchange, healthy: Sequence[Exchange] = ()) -> str:
    """The fault mode that explains this reply; empty where it looks well.

    Args:
        exchange: what was recorded.
        healthy: the same call in other runs that went well.
    """
    reply = exchange.reply
    if not reply.status:
        return _unanswered(reply)
    if exchange.kind == "llm":
        return _of_model(exchange) or _slow(exchange, healthy)
    return _of_tool(exchange) or _beside(exchange, healthy) or _slow(exchange, healthy)


def _unanswered(reply: Recorded) -> str:
    text = (reply.error or "").lower()
    if reply.end == "client left" or "timeout" in text or "timed out" in text:
        return "timeout"  # whether the call took effect all the same, no reply tells
    return "connection_reset"


def _of_model(exchange: Exchange) -> str:
    reply = exchange.reply
    if reply.status == 429:
        return "rate_limit"
    if reply.status in (503, 529):
        return "overloaded"
    if reply.status >= 500:
        return "server_error"
    if reply.end != "eof":
        return "stream_cut" if reply.end == "broken" else ""
    meaning = said(exchange, reply)
    if meaning is None or reply.status >= 400:
        return ""
    return _of_words(meaning)


def _of_words(meaning: Said) -> str:
    finish = (meaning.finish or "").lower()
    if finish in _CUT:
        return "truncated_response"
    if finish in _FILTERED:
        return "content_filter"
    for call in meaning.tool_calls:
        if isinstance(call.arguments, str) and not isinstance(_json(call.arguments.encode()), Mapping):
            return "bad_tool_call"
    if not meaning.text.strip():
        return "" if meaning.tool_calls else "empty"
    if _is_noise(meaning.text):
        return "garbage"
    return "refusal" if is_refusal(meaning.text) else ""


def _of_tool(exchange: Exchange) -> str:
    reply = exchange.reply
    if reply.end == "broken":
        return "connection_reset"
    if reply.status >= 500 or reply.status in (408, 429):
        return "error"
    body = decode_body(reply.body, reply.headers)
    if not body.strip():
        return "empty" if reply.status < 300 else ""
    document = _json(body)
    if document is _NOTHING:
        kind = (header(reply.headers, "content-type") or "").lower()
        return (
            "malformed" if "json" in kind or body.lstrip()[:1] in b"{[" else _of_text(body.decode("utf-8", "replace"))
        )
    if isinstance(document, Mapping) and exchange.kind == "mcp":
        return _of_result(document)
    if document in ({}, [], None, ""):
        return "empty"
    return _of_text(" ".join(_strings(document)))


def _of_result(document: Mapping[str, Any]) -> str:
    """An MCP reply."""
    result = document.get("result")
    if "error" in document or (isinstance(result, Mapping) and result.get("isError")):
        return "error"
    if isinstance(result, Mapping) and result.get("content") == [] and not result.get("structuredContent"):
        return "empty"
    return _of_text(" ".join(_strings(result)))


def _of_text(text: str) -> str:
    return "indirect_injection" if _ORDER.search(text) else ""


def _beside(exchange: Exchange, healthy: Sequence[Exchange]) -> str:
    """What differs from what the same call is answered otherwise."""
    here = _json(decode_body(exchange.reply.body, exchange.reply.headers))
    others = [_json(decode_body(each.reply.body, each.reply.headers)) for each in healthy if each.reply.status]
    others = [other for other in others if other is not _NOTHING]
    if here is _NOTHING or not others or here in others:
        return ""
    mine, theirs = _paths(here), set.intersection(*(_paths(other) for other in others))
    if theirs - mine:
        return "drop_fields" if mine != {""} and mine <= theirs else "malicious_response"
    length, longest = len(orjson.dumps(here)), max(len(orjson.dumps(other)) for other in others)
    return "indirect_injection" if length > _MUCH_LONGER * longest + 40 else "wrong_value"


def _slow(exchange: Exchange, healthy: Sequence[Exchange]) -> str:
    known = sorted(each.duration_ms for each in healthy)
    if not known or exchange.duration_ms < _LATE_MS:
        return ""
    return "slow" if exchange.duration_ms > _MUCH_SLOWER * known[len(known) // 2] else ""


def _paths(document: Any, at: str = "", depth: int = 0) -> set[str]:
    """Where something stands in a document; the elements of a list are one place."""
    if depth > 20:
        return {at}
    if isinstance(document, Mapping):
        return {at, *(path for key, value in document.items() for path in _paths(value, f"{at}.{key}", depth + 1))}
    if isinstance(document, list):
        return {at, *(path for value in document[:50] for path in _paths(value, f"{at}[]", depth + 1))}
    return {at}


def _strings(document: Any, depth: int = 0) -> Iterable[str]:
    if isinstance(document, str):
        yield document
    elif depth < 20 and isinstance(document, Mapping | list):
        for value in document.values() if isinstance(document, Mapping) else document:
            yield from _strings(value, depth + 1)


def _is_noise(text: str) -> bool:
    """Mostly neither letters of any language, nor digits, nor blanks, nor what sentences and code are set with."""
    odd = sum(not (c.isalnum() or c.isspace() or c in ".,;:!?'\"()[]{}-_/\\+=<>*#@%&|`~$^") for c in text)
    return odd > 0.15 * len(text)


_NOTHING = object()


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _NOTHING
