"""The lines of a tape file: exchanges to JSON and back, each sealed to the one before.

A tape is JSON Lines: a header, one line per exchange in the order they ended, a footer. The last member of every line
is `chain`, the SHA-256 of the previous line's chain value followed by the line without that member, so a line that was
changed, moved, left out or added shows at the first line that disagrees. Whoever rewrites every line can seal a forged
tape; the chain tells accidents and edits, it does not name authors.

A body is a JSON string where it is UTF-8, else `{"base64": ...}`; both give back the exact bytes.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

import orjson

from flakestorm.core.call import Headers
from flakestorm.core.ledger import Family, Firing
from flakestorm.core.site import Site
from flakestorm.tape.model import End, Exchange, Recorded

__all__ = ["START", "Said", "body_bytes", "body_value", "digest", "from_line", "open_seal", "seal", "to_line"]

START = b""
"""What the first line is chained to."""

_TAIL = len(b',"chain":""}') + 64


def seal(content: Mapping[str, Any], previous: bytes) -> tuple[bytes, bytes]:
    """A line (with its line end) and its chain value."""
    try:
        plain = orjson.dumps(content)
    except TypeError:  # half a surrogate pair in a header or a name; JSON has no spelling for it
        plain = orjson.dumps(_sayable(content))
    chain = hashlib.sha256(previous + plain).hexdigest().encode()
    return b"".join((plain[:-1], b',"chain":"', chain, b'"}\n')), chain


def open_seal(line: bytes, previous: bytes) -> tuple[dict[str, Any], bytes]:
    """A line's content and its chain value; the inverse of `seal`.

    Raises:
        ValueError: the line is not JSON of this form, or its chain value is not the one that belongs here.
    """
    line = line.rstrip(b"\r\n")
    content = orjson.loads(line)
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    chain = content.pop("chain", None)
    expected = hashlib.sha256(previous + line[:-_TAIL] + b"}").hexdigest()
    if chain != expected:
        raise ValueError("its chain value does not follow from the line before: it, or a line before it, was changed")
    return content, expected.encode()


def digest(exchanges: Iterable[Exchange], output: str) -> str:
    """What was asked and said, as one hexadecimal SHA-256; see `Said`."""
    said = Said()
    for exchange in exchanges:
        said.add(exchange)
    return said.total(output)


class Said:
    """What was asked and said, gathered exchange by exchange into one hash; no exchange is kept.

    It covers each request's method, URL and body, each reply's status and body as the agent saw it, their order within
    each lane, and the agent's output. Times, headers and the order between lanes are left out, so two runs in which the
    same things were said have the same digest.
    """

    __slots__ = ("_lanes",)

    def __init__(self) -> None:
        self._lanes: dict[str, list[tuple[int, bytes]]] = {}

    def add(self, exchange: Exchange) -> None:
        """An exchange that has ended; in any order."""
        reply, request = exchange.reply, exchange.body
        asked = f"{exchange.site.kind} {exchange.method} {exchange.url}".encode("utf-8", "replace")
        said = f"{reply.status} {reply.error or ''}".encode("utf-8", "replace")
        answer = reply.body
        lengths = b"%d %d %d %d\n" % (len(asked), len(request), len(said), len(answer))
        each = hashlib.sha256(b"".join((lengths, asked, request, said, answer))).digest()
        self._lanes.setdefault(exchange.lane, []).append((exchange.n, each))

    def total(self, output: str) -> str:
        """The hash, in hexadecimal, with the agent's output."""
        total = hashlib.sha256()
        for lane, said in sorted(self._lanes.items()):
            state = hashlib.sha256(lane.encode("utf-8", "replace"))
            for _, each in sorted(said):
                state.update(each)
            total.update(state.digest())
        total.update(output.encode("utf-8", "replace"))
        return total.hexdigest()


def to_line(exchange: Exchange) -> dict[str, Any]:
    """An exchange as a JSON object."""
    site, world, faults = exchange.site, exchange.world, exchange.faults
    line = {
        "n": exchange.n,
        "site": str(site),
        "lane": exchange.lane,
        "wire": exchange.wire,
        "method": exchange.method,
        "url": exchange.url,
        "headers": exchange.headers,
        "body": body_value(exchange.body),
        "reply": _recorded(exchange.reply),
        "world": None if world is None else _recorded(world),
        "sent": exchange.sent,
        "faults": [_fired(firing, site) for firing in faults] if faults else (),
        "t_ms": exchange.t_ms,
        "duration_ms": exchange.duration_ms,
        "note": exchange.note,
    }
    if exchange.world_body is not None:
        line["world_body"] = body_value(exchange.world_body)
    return line


def from_line(line: Mapping[str, Any]) -> Exchange:
    """The inverse of `to_line`. Unknown members are ignored.

    Raises:
        ValueError: a member is missing or not of its type; the message names it.
    """
    site = Site.parse(_text(line, "site"))
    world = line.get("world")
    return Exchange(
        site,
        lane=_text(line, "lane"),
        wire=_text(line, "wire"),
        method=_text(line, "method"),
        url=_text(line, "url"),
        headers=_headers(line),
        body=body_bytes(line.get("body")),
        reply=_reply(line.get("reply")),
        world=None if world is None else _reply(world),
        world_body=None if line.get("world_body") is None else body_bytes(line["world_body"]),
        sent=_whole(line, "sent"),
        faults=tuple(_firing(site, fault) for fault in _list(line, "faults")),
        t_ms=_number(line.get("t_ms")),
        duration_ms=_number(line.get("duration_ms")),
        n=_whole(line, "n"),
        note=_text(line, "note"),
    )


def _sayable(value: Any) -> Any:
    """The same with `?` for characters that UTF-8 cannot say."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {str(name): _sayable(part) for name, part in value.items()}
    return [_sayable(part) for part in value] if isinstance(value, (list, tuple)) else value


def _recorded(reply: Recorded) -> dict[str, Any]:
    chunks = reply.chunks
    return {
        "status": reply.status,
        "reason": reply.reason,
        "headers": reply.headers,
        "stream": reply.stream,
        "chunks": (body_value(chunks[0]),) if len(chunks) == 1 else [body_value(chunk) for chunk in chunks],
        "at_ms": reply.at_ms,
        "end": reply.end,
        "error": reply.error,
    }


def _reply(line: Any) -> Recorded:
    if not isinstance(line, dict):
        raise ValueError("'reply' and 'world' must be objects")
    end, error = _text(line, "end"), line.get("error")
    if end not in get_args(End) or not (error is None or isinstance(error, str)):
        raise ValueError(f"'end' and 'error' cannot be {end!r} and {error!r}")
    return Recorded(
        status=_whole(line, "status"),
        headers=_headers(line),
        reason=_text(line, "reason"),
        chunks=[body_bytes(chunk) for chunk in _list(line, "chunks")],
        at_ms=[_number(at) for at in _list(line, "at_ms")],
        stream=line.get("stream") is True,
        end=cast(End, end),
        error=error,
    )


def _fired(firing: Firing, here: Site) -> dict[str, Any]:
    line = {"mode": firing.mode, "family": firing.family, "detail": firing.detail, "fault": firing.fault}
    return line if firing.site == here else {**line, "site": str(firing.site)}


def _firing(here: Site, line: Any) -> Firing:
    if not isinstance(line, dict):
        raise ValueError("'faults' must hold objects")
    family = _text(line, "family")
    if family not in get_args(Family):
        raise ValueError(f"'family' cannot be {family!r}")
    site, via = (Site.parse(_text(line, "site")), here) if "site" in line else (here, None)
    return Firing(site, _text(line, "mode"), cast(Family, family), _text(line, "detail"), _whole(line, "fault"), via)


def body_value(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def body_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and isinstance(value.get("base64"), str):
        return b64decode(value["base64"], validate=True)
    raise ValueError("a body must be a string or {'base64': ...}")


def _headers(line: Mapping[str, Any]) -> Headers:
    pairs = [tuple(pair) if isinstance(pair, list) else () for pair in _list(line, "headers")]
    if not all(len(pair) == 2 and all(isinstance(part, str) for part in pair) for pair in pairs):
        raise ValueError("'headers' must be pairs of strings")
    return cast(Headers, tuple(pairs))


def _list(line: Mapping[str, Any], name: str) -> list[Any]:
    if not isinstance(value := line.get(name), list):
        raise ValueError(f"{name!r} must be a list")
    return value


def _text(line: Mapping[str, Any], name: str) -> str:
    if not isinstance(value := line.get(name), str):
        raise ValueError(f"{name!r} must be a string")
    return value


def _whole(line: Mapping[str, Any], name: str) -> int:
    if not isinstance(value := line.get(name), int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name!r} must be a whole number")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError("a time must be a number")
    return float(value)
