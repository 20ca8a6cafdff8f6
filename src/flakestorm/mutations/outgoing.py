"""A request on its way to the agent, as a value that mutations change and the agent's client sends."""

from __future__ import annotations

from dataclasses import replace

from flakestorm.core.call import Headers
from flakestorm.core.record import Record

__all__ = ["BODY_LIMIT_BYTES", "PAUSES_LIMIT_S", "Delivery", "Outgoing"]

BODY_LIMIT_BYTES = 64 * 1024 * 1024
COPIES_LIMIT = 50
PAUSES_LIMIT_S = 10.0


class Delivery(Record, frozen=True):
    """How a request is put on the wire.

    Args:
        chunk_bytes: the body goes in chunks of this size (`Transfer-Encoding: chunked`); 0: with its length.
        trailers: headers after a chunked body.
        version: of HTTP; 1.0 has neither chunks nor a need for a host.
        length: what `Content-Length` says, where that is not the length.
        pieces: in how many pieces the request is written.
        pause_s: between the pieces.
        copies: how many of the same request are under way at the same moment.
    """

    chunk_bytes: int = 0
    trailers: Headers = ()
    version: str = "1.1"
    length: int | None = None
    pieces: int = 1
    pause_s: float = 0.0
    copies: int = 1

    @property
    def paused_s(self) -> float:
        """How long the sender waits on purpose."""
        return self.pause_s * max(self.pieces - 1, 0)


class Outgoing(Record, frozen=True):
    """One request.

    Args:
        method, url: where it goes; no mutation changes anything of the URL but its query.
        params: added to the query.
        headers: in order, repeated ones too.
        body: as sent.
        delivery: how it is sent.
    """

    method: str
    url: str
    params: tuple[tuple[str, str], ...] = ()
    headers: Headers = ()
    body: bytes = b""
    delivery: Delivery = Delivery()

    def header(self, name: str, value: str) -> Outgoing:
        """The same with this header instead of any of its name."""
        kept = tuple((n, v) for n, v in self.headers if n.lower() != name.lower())
        return replace(self, headers=(*kept, (name, value)))

    def sent(self, **how: object) -> Outgoing:
        """The same, delivered so."""
        return replace(self, delivery=replace(self.delivery, **how))  # type: ignore[arg-type]

    def within_limits(self, before: Outgoing) -> Outgoing:
        """The same, to the same place and no larger than is allowed.

        Args:
            before: the request as it would be without the mutation.
        """
        body = self.body if len(self.body) <= BODY_LIMIT_BYTES else before.body
        how = self.delivery
        pause_s = how.pause_s if how.paused_s <= PAUSES_LIMIT_S else PAUSES_LIMIT_S / (how.pieces - 1)
        delivery = replace(how, pause_s=pause_s, copies=min(how.copies, COPIES_LIMIT))
        return replace(self, url=before.url, body=body, delivery=delivery)
