"""What a tape holds: exchanges, as raw bytes plus the facts a reader cannot recompute.

Meaning (text, tool calls, finish reason, usage) is not stored; it is decoded by `wire` when somebody looks, so
recording stays cheap and a better decoder improves old tapes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import field as made

from flakestorm.core.call import Headers, Repeats
from flakestorm.core.ledger import Firing
from flakestorm.core.record import Slate
from flakestorm.core.site import Kind, Site
from flakestorm.tape.copied import Text

__all__ = ["FORMAT", "End", "Exchange", "Recorded", "kept", "repeats"]

FORMAT = "flakestorm-tape/1"
"""The public form of a tape (`flakestorm tapes show --format json`); the number of the file's own is `lines.FILE`."""

End = Literal["eof", "client left", "broken"]


class Recorded(Slate):
    """A reply as it passed one point of the pipeline.

    Args:
        status, headers, reason: as passed; secrets are removed before they are kept.
        chunks: the body, in the pieces it came in. A whole reply is one chunk or more, read as their join.
        at_ms: when each chunk passed, in milliseconds since the run began.
        stream: whether it was a stream of events.
        end: `eof`, `client left` (the agent stopped reading) or `broken` (the connection failed; see `error`).
        error: what broke it, in words, where something did; a call that got no reply has status 0 and an error.
    """

    status: int = 0
    headers: Headers = ()
    reason: str = ""
    chunks: list[bytes] = made(default_factory=list)
    at_ms: list[float] = made(default_factory=list)
    stream: bool = False
    end: End = "eof"
    error: str | None = None

    def heard_ms(self, end_ms: float) -> float | None:
        """When the agent heard of it: with the first bytes of the body, or, where there was no reply, at the end. None
        for one without a body, of which a client may know at once or a little later.

        Args:
            end_ms: when the exchange ended, in milliseconds since the run began.
        """
        return self.at_ms[0] if self.at_ms else None if self.status else end_ms

    @property
    def body(self) -> bytes:
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)


@dataclass(slots=True)
class Exchange:
    """One call and its reply.

    Args:
        site: address within the run.
        lane: which concurrent thread of the agent made it.
        wire: name of the wire protocol that understands the bodies; empty when opaque.
        method, url, headers, body: the request as the agent made it.
        reply: what the agent saw.
        world: what the world said, where a fault made that differ; None when it is the same, or when the world was
            never asked (see `sent`).
        world_body: the request body that the world got, where a fault changed it; None when it got what the agent sent,
            or nothing (see `sent`).
        sent: how many times the request really went out: 0 when a fault answered in the world's place.
        faults: what fired here, and (by way of this call) at the tool results that it carried.
        t_ms, duration_ms: when the call arrived, since the run began, and how long until its reply had ended.
        n: order of arrival in the run, from 0; a tape file holds exchanges in the order they ended.
        note: what a reader should know about this record, e.g. that a streamed request body was not kept.
    """

    site: Site
    lane: str = ""
    wire: str = ""
    method: str = "POST"
    url: str = ""
    headers: Headers = ()
    body: bytes = b""
    reply: Recorded = field(default_factory=Recorded)
    world: Recorded | None = None
    world_body: bytes | None = None
    sent: int = 0
    faults: tuple[Firing, ...] = ()
    t_ms: float = 0.0
    duration_ms: float = 0.0
    n: int = 0
    note: str = ""

    @property
    def kind(self) -> Kind:
        return self.site.kind

    @property
    def name(self) -> str:
        return self.site.name


def _made_when_asked_for(name: str) -> None:
    """Let this field hold a `Text` too, and give its bytes: a long conversation repeats itself in every request."""
    slot: Any = vars(Exchange)[name]

    def get(self: Exchange) -> bytes | None:
        value: Any = slot.__get__(self)
        return value.data() if isinstance(value, Text) else value

    setattr(Exchange, name, property(get, slot.__set__))


def kept(exchange: Exchange) -> Text | bytes:
    """The request body of an exchange as it is kept: most of a long one is in the one before."""
    value: Text | bytes = _body.__get__(exchange)
    return value


def repeats(exchange: Exchange) -> Repeats | None:
    """What the request body of an exchange is kept as: so many bytes of an earlier one, and more. None where that is
    not known, or the earlier one would have to be made for it."""
    held = kept(exchange)
    if not isinstance(held, Text) or held.base is None:
        return None
    body, before = held.data(), held.base.made
    return None if before is None else (body, before, held.repeats)


_body: Any = vars(Exchange)["body"]
_made_when_asked_for("body")
_made_when_asked_for("world_body")
