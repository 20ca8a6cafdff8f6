"""Two recordings side by side: which exchanges belong together, and whether the same was said.

Exchanges are paired by site. What was said is compared by its meaning where a wire understands it (messages, tool
calls, finish), because ids and time stamps of providers differ in any two runs; otherwise by status and body.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from flakestorm.core.call import Headers
from flakestorm.tape.difference import differences
from flakestorm.tape.document import said
from flakestorm.tape.model import Exchange
from flakestorm.viewer.recording import Recording
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.protocols import wire_of

__all__ = ["Pair", "asked_of", "pairs", "said_of", "words"]

_LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two exchanges of one site, by their places; None where one side has no such exchange.

    Args:
        left, right: places in order of arrival.
        asked, said: whether that part is the same on both sides.
    """

    left: int | None
    right: int | None
    asked: bool = False
    said: bool = False

    @property
    def same(self) -> bool:
        return self.asked and self.said


def pairs(left: Recording, right: Recording) -> list[Pair]:
    """All exchanges of both, in the order of the left; what only the right has stands after its predecessor.

    Raises:
        TapeDamaged: a tape was written to since it was outlined.
    """
    ours, theirs = _digests(left), _digests(right)
    found: dict[str, int] = {}
    for at, line in enumerate(right.lines):
        found.setdefault(line.site, at)
    own = {line.site for line in left.lines}
    beyond: dict[int, list[int]] = {}
    before = -1
    for at, line in enumerate(right.lines):
        if line.site in own:
            before = at
        else:
            beyond.setdefault(before, []).append(at)
    made = [Pair(None, at) for at in beyond.pop(-1, [])]
    for at, line in enumerate(left.lines):
        other = found.get(line.site)
        if other is None:
            made.append(Pair(at, None))
            continue
        made.append(Pair(at, other, ours[at][0] == theirs[other][0], ours[at][1] == theirs[other][1]))
        made += [Pair(None, more) for more in beyond.pop(other, [])]
    return [*made, *(Pair(None, at) for rest in beyond.values() for at in rest)]


def words(left: Exchange, right: Exchange) -> dict[str, list[str]]:
    """Where two exchanges differ, a line each: in what was asked, and in what was said."""
    return {
        "asked": differences(asked_of(left), asked_of(right), most=40),
        "said": differences(said_of(left), said_of(right), most=40),
    }


def asked_of(exchange: Exchange) -> Any:
    """A request's meaning: the conversation without call ids, or method, place and body."""
    wire = wire_of(exchange.wire) if exchange.kind == "llm" else None
    if wire is None:
        return {
            "method": exchange.method,
            "to": _place(exchange.url),
            "body": _content(exchange.body, exchange.headers),
        }
    asked = wire.asked(decode_body(exchange.body, exchange.headers))
    return {
        "model": asked.model,
        "messages": [
            {
                "role": turn.role,
                "text": turn.text,
                "calls": [[call.name, _json(call.arguments)] for call in turn.tool_calls],
                "results": [_json(result.text) for result in turn.tool_results],
            }
            for turn in asked.turns
        ],
        "tools": list(asked.tools),
    }


def said_of(exchange: Exchange) -> Any:
    """A reply's meaning as the agent saw it."""
    reply = exchange.reply
    meaning = said(exchange, reply)
    state = {"status": reply.status, "end": reply.end, "error": reply.error}
    if meaning is None or not (meaning.text or meaning.tool_calls or meaning.finish):
        return {**state, "body": _content(reply.body, reply.headers)}
    calls = [[call.name, _json(call.arguments)] for call in meaning.tool_calls]
    return {**state, "text": meaning.text, "calls": calls, "finish": meaning.finish}


def _digests(recording: Recording) -> list[tuple[bytes, bytes]]:
    return [(_digest(asked_of(each)), _digest(said_of(each))) for each in recording.exchanges()]


def _digest(value: Any) -> bytes:
    try:
        plain = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # half a surrogate pair
        plain = repr(value).encode("utf-8", "backslashreplace")
    return hashlib.sha256(plain).digest()


def _place(url: str) -> str:
    """The address; of this machine's own, without the port, which another run need not get."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return url
    return url if host not in _LOCAL else f"{host}{parts.path}{'?' if parts.query else ''}{parts.query}"


def _content(body: bytes, headers: Headers) -> Any:
    return _json(decode_body(body, headers).decode("utf-8", "replace"))


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
