"""The public JSON form of one exchange (`flakestorm tapes show --format json`).

Bodies become meaning here, by the exchange's wire; nothing is stored twice for it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from typing import Any, overload

import orjson

from flakestorm.core.call import Headers, Reply
from flakestorm.core.stream import pump
from flakestorm.errors import CallFailed
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.wire.base import Said
from flakestorm.wire.encoding import decode_body, decoded
from flakestorm.wire.protocols import wire_of

__all__ = ["Documents", "document", "said"]


class Documents(Sequence[dict[str, Any]]):
    """Exchanges as plain JSON values, each made anew when it is asked for.

    A packed reply may unpack to a thousand times its size, so what one of them takes is given back before the next.
    """

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = exchanges

    def __len__(self) -> int:
        return len(self._exchanges)

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, at: slice) -> Documents: ...

    def __getitem__(self, at: int | slice) -> dict[str, Any] | Documents:
        found = self._exchanges[at]
        return document(found) if isinstance(found, Exchange) else Documents(found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Documents | list):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list


def document(exchange: Exchange) -> dict[str, Any]:
    """An exchange as plain JSON values.

    `request.body` is the JSON value where the body is JSON, else its text. `reply.chunks` is a list of strings: the
    pieces of a stream as they came, or the one text of a whole reply; joined they are the body, without content
    encoding. `reply.text` is what the model said, or, where no wire understands the reply, the whole body. `world` is
    of the same shape as `reply`, or null; `world_request` is what the world was asked where a fault changed that, or
    null.
    """
    return {
        "site": str(exchange.site),
        "kind": exchange.kind,
        "name": exchange.name,
        "lane": exchange.lane,
        "wire": exchange.wire,
        "request": {
            "method": exchange.method,
            "url": exchange.url,
            "headers": [list(field) for field in exchange.headers],
            "body": _json(exchange, exchange.body),
        },
        "reply": _reply(exchange, exchange.reply),
        "world": None if exchange.world is None else _reply(exchange, exchange.world),
        "world_request": None if exchange.world_body is None else {"body": _json(exchange, exchange.world_body)},
        "sent": exchange.sent,
        "faults": [{"site": str(f.site), "mode": f.mode, "detail": f.detail} for f in exchange.faults],
        "t_ms": exchange.t_ms,
        "duration_ms": exchange.duration_ms,
        "note": exchange.note,
    }


def said(exchange: Exchange, reply: Recorded) -> Said | None:
    """What a reply of this exchange means; None where no wire understands it."""
    wire = wire_of(exchange.wire)
    return None if wire is None else wire.said(decode_body(reply.body, reply.headers), stream=reply.stream)


def _reply(exchange: Exchange, reply: Recorded) -> dict[str, Any]:
    chunks = _texts(_pieces(reply))
    meaning = said(exchange, reply) or Said(text="".join(chunks))
    usage = meaning.usage
    return {
        "status": reply.status,
        "headers": [list(field) for field in reply.headers],
        "stream": reply.stream,
        "chunks": chunks,
        "text": meaning.text,
        "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in meaning.tool_calls],
        "finish": meaning.finish,
        "usage": {"input": usage.input if usage else None, "output": usage.output if usage else None},
        "end": reply.end,
        "error": reply.error,
    }


def _pieces(reply: Recorded) -> list[bytes]:
    """The body without content encoding: the pieces of a stream, or the one piece of a whole reply."""
    if not reply.stream:
        return [body] if (body := decode_body(reply.body, reply.headers)) else []
    plain = decoded(Reply(headers=_headers(reply.headers), body=reply.chunks))
    if plain is None:
        return reply.chunks
    try:
        return list(pump(plain, lambda _: None))
    except CallFailed:  # it unpacks to more than anybody could read
        return reply.chunks


def _headers(headers: Headers) -> Headers:
    return tuple(field for field in headers if field[0].lower() == "content-encoding")


def _texts(pieces: Iterable[bytes]) -> list[str]:
    """Each piece as text; a character that is split between two pieces goes to the second."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts = [decoder.decode(piece) for piece in pieces]
    if rest := decoder.decode(b"", final=True):
        texts.append(rest)
    return texts


def _json(exchange: Exchange, body: bytes) -> Any:
    body = decode_body(body, exchange.headers)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
