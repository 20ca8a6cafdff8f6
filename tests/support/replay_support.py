"""Requests for tests of matching: made by hand, recorded by others, and edited."""

from __future__ import annotations

import copy
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

from flakestorm.core.call import Headers
from flakestorm.core.site import Kind, Site
from flakestorm.tape.fingerprint import Request
from flakestorm.tape.match import Match, Matcher, Mode
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.tokens import Span

URL = "https://api.openai.com/v1/chat/completions"
HEADERS = (("Authorization", "[secret:1a2b3c4d]"), ("Content-Type", "application/json"), ("User-Agent", "sdk/1.0"))
RECORDED_S, REPLAYED_S = 1_795_000_000.0, 1_795_600_000.0
SPANS = (Span(RECORDED_S, RECORDED_S + 60), Span(REPLAYED_S, REPLAYED_S + 60))


def reply(text: str | bytes = "said", **changes: Any) -> Recorded:
    """A recorded reply."""
    body = text.encode() if isinstance(text, str) else text
    given = {"status": 200, "headers": (("content-type", "application/json"),), "reason": "OK", "chunks": [body]}
    return Recorded(**{**given, **changes})


def exchange(n: int, body: object, said: Recorded | None = None, **changes: Any) -> Exchange:
    """The n-th recorded exchange, from 0."""
    given: dict[str, Any] = {
        "lane": "1", "wire": "openai_chat", "method": "POST", "url": URL, "headers": HEADERS, "t_ms": n * 10.0,
        "duration_ms": 5.0,
    }  # fmt: skip
    site = changes.pop("site", Site("llm", "gpt-4o", n + 1))
    return Exchange(site, body=_bytes(body), reply=said or reply(f"reply {n}"), n=n, **{**given, **changes})


def request(
    body: object, *, url: str = URL, headers: Headers = HEADERS, kind: Kind = "llm", name: str = "gpt-4o", **rest: Any
) -> Request:
    """A request of the replay."""
    return Request(kind, name, rest.get("method", "POST"), url, headers, _bytes(body))


def chat(*turns: str, **more: Any) -> dict[str, Any]:
    """A chat request whose turns are the user's and the model's by turns."""
    roles = ("user", "assistant")
    return {"model": "gpt-4o", "messages": [{"role": roles[n % 2], "content": t} for n, t in enumerate(turns)], **more}


def matcher(*exchanges: Exchange, mode: Mode = "renamed") -> Matcher:
    return Matcher(exchanges, mode=mode, spans=SPANS)


def against(one: Exchange, other: Request, mode: Mode = "renamed") -> Match:
    """How a request fares against a tape of one exchange."""
    return matcher(one, mode=mode).match(other, "1")


def _bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


Edit = tuple[str, Any]
"""What was done, and the edited body."""

VOLATILE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*"
    r"|(?:call|toolu|srvtoolu|msg|resp|fc|rs)_\w+|chatcmpl-\S+"
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w.])")
_VERB = re.compile(r"\b(?:is|are|should|can|must|will|do|does)\b")


def semantic_edits(body: Any) -> Iterator[Edit]:
    """Changes that mean something, each alone."""
    for path, value in _leaves(body):
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, (int, float)):
            for delta in (1, -1):
                yield f"number {delta:+} at {path}", _with(body, path, value + delta)
            continue
        hidden = [m.span() for m in VOLATILE.finditer(value)]
        numbers = [m for m in _NUMBER.finditer(value) if not any(a <= m.start() < b for a, b in hidden)]
        for m in numbers[:2]:
            new = f"{value[: m.start()]}{int(m[0]) + 1}{value[m.end() :]}"
            yield f"number in text at {path}", _with(body, path, new)
        verb = _VERB.search(value)
        if verb and path[-1] in ("content", "text", "output"):
            yield f"negation at {path}", _with(body, path, f"{value[: verb.end()]} not{value[verb.end() :]}")
        if path[-1] in ("content", "text") and len(value) > 3:
            yield f"other words at {path}", _with(body, path, value + " Answer in French.")
        if path[-1] in ("model", "name", "role", "type", "tool_choice"):
            yield f"other {path[-1]}", _with(body, path, value + "-x")
    for name in ("messages", "input", "contents"):
        turns = body.get(name) if isinstance(body, dict) else None
        if isinstance(turns, list) and len(turns) > 1:
            yield f"a turn less in {name}", {**body, name: turns[:-1]}
            if turns[0] != turns[-1]:
                yield f"turns swapped in {name}", {**body, name: [turns[-1], *turns[1:-1], turns[0]]}
            results = [n for n, turn in enumerate(turns) if isinstance(turn, dict) and turn.get("role") == "tool"]
            if len(results) > 1 and turns[results[0]]["content"] != turns[results[1]]["content"]:
                swapped = copy.deepcopy(turns)
                a, b = results[:2]
                swapped[a]["content"], swapped[b]["content"] = turns[b]["content"], turns[a]["content"]
                yield "tool results swapped", {**body, name: swapped}


def benign_edits(body: Any) -> Iterator[tuple[str, bytes]]:
    """Changes that mean nothing: the same document, spelled otherwise, or with other ids."""
    yield "keys reversed", json.dumps(_reversed(body)).encode()
    yield "indented", json.dumps(body, indent=2).encode()
    yield "compact", json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    yield "numbers respelled", re.sub(rb'(": )(\d+)([,}])', rb"\1\2.0\3", json.dumps(body).encode())
    ids = sorted(set(re.findall(r"(?:call|toolu|msg|resp)_[A-Za-z0-9]{16,}", json.dumps(body))))
    if ids:
        text = json.dumps(body)
        for n, old in enumerate(ids):
            prefix = old.partition("_")[0]
            text = text.replace(old, f"{prefix}_{uuid.UUID(int=n + 1).hex[: len(old) - len(prefix) - 1]:0<8}")
        yield "provider ids renamed", text.encode()


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for n, item in enumerate(value):
            yield from _leaves(item, (*path, n))
    else:
        yield path, value


def _with(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.copy(body)
    at = changed
    for step in path[:-1]:
        at[step] = copy.copy(at[step])
        at = at[step]
    if not path:
        return value
    at[path[-1]] = value
    return changed
