"""How much a request carries and how it arrives: size, nesting, many at once, slowly, in odd frames."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from flakestorm.core.choices import Draw
from flakestorm.mutations.base import RequestOperator, types
from flakestorm.mutations.outgoing import Outgoing

__all__: list[str] = []

_KB = 1_024


def _with_fields(request: Outgoing, fields: dict[str, Any]) -> Outgoing:
    """The body with more fields; the agent's own come first. What is no JSON object gets the fields behind it."""
    try:
        data = json.loads(request.body)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        body = request.body.rstrip()[:-1] + (b", " if data else b"") + json.dumps(fields)[1:].encode()
        return replace(request, body=body)
    return replace(request, body=request.body + b"\n" + json.dumps(fields).encode())


def _nested(depth: int, *, lists: bool = False) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value] if lists else {"a": value}
    return value


def _padding(request: Outgoing, draw: Draw) -> Outgoing:
    size = draw.choice((100, 250, 500, 1_000)) * _KB
    return _with_fields(request, {"padding": draw.choice("xA0 ") * size})


def _white(request: Outgoing, draw: Draw) -> Outgoing:
    """Blank space, which JSON allows: the same document, much longer."""
    return replace(request, body=b" " * (draw.choice((100, 300, 1_000)) * _KB) + request.body)


def _wide(request: Outgoing, draw: Draw) -> Outgoing:
    size = draw.choice((10, 20, 50)) * _KB
    return _with_fields(request, {"items": [draw.randint(0, 9)] * size, "text": draw.choice("éñ漢🙂") * size})


def _cut_body(request: Outgoing, draw: Draw) -> Outgoing:
    return replace(request, body=request.body[: draw.randint(0, max(len(request.body) - 1, 0))])


def _no_body(request: Outgoing, draw: Draw) -> Outgoing:
    return replace(request, body=draw.choice((b"", b" ", b"{}", b"\n")))


@types.add("payload_size_attack")
def payload_size_attack() -> tuple[RequestOperator, ...]:
    """From nothing to a megabyte; blank space around the very same document is benign."""
    return (
        RequestOperator("padded_field", "attack", _padding),
        RequestOperator("empty_body", "attack", _no_body),
        RequestOperator("blank_space", "benign", _white),
        RequestOperator("wide_list", "attack", _wide),
        RequestOperator("cut_off", "attack", _cut_body),
    )


def _deep(request: Outgoing, draw: Draw) -> Outgoing:
    return _with_fields(request, {"nested": _nested(draw.choice((50, 100, 200, 400)))})


def _deep_lists(request: Outgoing, draw: Draw) -> Outgoing:
    return _with_fields(request, {"nested": _nested(draw.choice((50, 100, 300)), lists=True)})


def _keys(request: Outgoing, draw: Draw) -> Outgoing:
    return _with_fields(request, {f"key_{at}": at for at in range(draw.choice((1_000, 3_000, 10_000)))})


def _number(request: Outgoing, draw: Draw) -> Outgoing:
    digits = draw.choice((400, 4_000, 20_000))
    body = _with_fields(request, {"number": 0}).body
    at = body.rindex(b"0")
    return replace(request, body=body[:at] + b"9" * digits + body[at + 1 :])


def _repeats(request: Outgoing, draw: Draw) -> Outgoing:
    """A text on which careless patterns backtrack for ever."""
    text = draw.choice(("a", "(", " ", "a@", "1.", "\t"))
    return _with_fields(request, {"text": text * draw.choice((5_000, 20_000, 50_000)) + "!"})


def _objects(request: Outgoing, draw: Draw) -> Outgoing:
    one = {"id": 1, "tags": ["x"] * 5, "more": {"a": {"b": {}}}}
    return _with_fields(request, {"items": [one] * draw.choice((500, 2_000, 5_000))})


@types.add("resource_exhaustion")
def resource_exhaustion() -> tuple[RequestOperator, ...]:
    """Work for parsers: nesting, keys, digits, backtracking; all attacks."""
    return (
        RequestOperator("nested_objects", "attack", _deep),
        RequestOperator("many_keys", "attack", _keys),
        RequestOperator("backtracking", "attack", _repeats),
        RequestOperator("nested_lists", "attack", _deep_lists),
        RequestOperator("long_number", "attack", _number),
        RequestOperator("many_objects", "attack", _objects),
    )


def _burst(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(copies=draw.choice((2, 3, 5, 8)))


def _flood(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(copies=draw.choice((10, 15, 20, 30)))


def _slow_burst(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(copies=draw.randint(2, 6), pieces=2, pause_s=0.2)


@types.add("concurrent_request_pattern")
def concurrent_request_pattern() -> tuple[RequestOperator, ...]:
    """The same request many times at one moment. A few are benign, for people press twice; a flood is an attack."""
    return (
        RequestOperator("burst", "benign", _burst),
        RequestOperator("flood", "attack", _flood),
        RequestOperator("slow_burst", "benign", _slow_burst),
    )


def _slow(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(pieces=draw.randint(2, 4), pause_s=draw.choice((0.2, 0.25, 0.3, 0.4)))


def _trickle(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(pieces=draw.randint(5, 8), pause_s=0.2)


def _slow_chunks(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(
        chunk_bytes=draw.choice((16, 64, 256)), pieces=draw.randint(2, 4), pause_s=draw.choice((0.2, 0.3))
    )


def _deadline(request: Outgoing, draw: Draw) -> Outgoing:
    name, value = draw.choice((("Prefer", "wait=0"), ("X-Request-Timeout", "0"), ("Request-Timeout", "-1"),
                               ("grpc-timeout", "1n"), ("X-Timeout-Ms", "1"), ("Keep-Alive", "timeout=0, max=0"),
                               ("X-Request-Timeout", "99999999999"), ("X-Deadline",
                                                                      "1970-01-01T00:00:00Z")))  # fmt: skip
    return request.header(name, value).sent(pieces=2, pause_s=0.2)


@types.add("timeout_manipulation")
def timeout_manipulation() -> tuple[RequestOperator, ...]:
    """A slow sender (benign: phones are), one that hardly gets on, and deadlines that make no sense (attacks)."""
    return (
        RequestOperator("slow_send", "benign", _slow),
        RequestOperator("trickle", "attack", _trickle),
        RequestOperator("false_deadline", "attack", _deadline),
        RequestOperator("slow_chunks", "benign", _slow_chunks),
    )


def _chunked(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(chunk_bytes=draw.choice((1, 7, 16, 100)))


def _trailers(request: Outgoing, draw: Draw) -> Outgoing:
    trailer = draw.choice((("X-Checksum", "0"), ("X-Admin", "true"), ("X-Trailer", "late")))
    return request.sent(chunk_bytes=64, trailers=(trailer,))


def _old_version(request: Outgoing, draw: Draw) -> Outgoing:
    """HTTP/1.0, which servers still must take; other versions do not exist."""
    return request.sent(version="1.0").header("Accept", draw.choice(("*/*", "application/json")))


def _no_version(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(version=draw.choice(("9.9", "1.2", "3.0", "0.9")))


def _short_length(request: Outgoing, draw: Draw) -> Outgoing:
    return request.sent(length=draw.randint(0, max(len(request.body) - 1, 0)))


def _no_length(request: Outgoing, draw: Draw) -> Outgoing:
    """A length that is none."""
    return request.sent(length=draw.choice((-1, -len(request.body))))


def _upgrade(request: Outgoing, draw: Draw) -> Outgoing:
    to = draw.choice(("websocket", "h2c", "TLS/1.0", "foo/2"))
    return request.header("Upgrade", to)


def _expect(request: Outgoing, draw: Draw) -> Outgoing:
    return request.header("Expect", draw.choice(("100-continue", "200-ok", "the unexpected")))


@types.add("protocol_level_attack")
def protocol_level_attack() -> tuple[RequestOperator, ...]:
    """Frames, versions and lengths. Chunks and HTTP/1.0 are the protocol's own, so benign; the others are attacks."""
    return (
        RequestOperator("chunks", "benign", _chunked),
        RequestOperator("short_length", "attack", _short_length),
        RequestOperator("trailers", "attack", _trailers),
        RequestOperator("unknown_version", "attack", _no_version),
        RequestOperator("old_version", "benign", _old_version),
        RequestOperator("expectation", "attack", _expect),
        RequestOperator("upgrade", "attack", _upgrade),
        RequestOperator("negative_length", "attack", _no_length),
    )
