"""What is noted of an exchange as it passes: heads without secrets, how a body ended, what a request's upload was."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress, count
from operator import is_not

from flakestorm.core.call import Headers, Reply, header
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.naming import SHORTEST
from flakestorm.tape.redact import Redactor, is_secret_header

__all__ = ["Heads", "broke", "differ", "ended", "heads", "keep_upload", "so_far", "unheard"]


class Heads:
    """Header fields without secrets; the very object again where they are the same as before."""

    __slots__ = ("_last", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._last: tuple[Headers, Headers, int] = (), (), -1

    def headers(self, fields: Headers) -> Headers:
        """As `Redactor.headers`."""
        last, redactor = self._last, self._redactor
        if redactor.version == last[2] and fields == last[0]:
            return last[1]
        version = redactor.version
        clean = self._but_for_some(fields) if version == last[2] and not redactor.patterns else None
        if clean is None:
            clean = redactor.headers(fields)
        self._last = fields, clean, version
        return clean

    def _but_for_some(self, fields: Headers) -> Headers | None:
        """The fields, where they are those of the last time but for values that plainly hold no secret; else None."""
        before, cleaned, _ = self._last
        if len(fields) != len(before):
            return None
        now, new = list(cleaned), list[str]()
        for at in compress(count(), map(is_not, fields, before)):  # most are the very objects
            name, value = now[at] = fields[at]
            if name != before[at][0] or is_secret_header(name):
                return None
            if len(value) >= SHORTEST:
                new.append(value)
        if new and not self._redactor.silent("\n".join(new).encode("utf-8", "surrogatepass")):
            return None
        return tuple(now)


def heads(into: Recorded, reply: Reply, redactor: Redactor) -> None:
    """How a reply begins, secrets out: status, headers, and whether its body comes as a stream."""
    into.status, into.reason, into.stream = reply.status, reply.reason, reply.streamed
    into.headers = redactor.headers(reply.headers)


def unheard() -> Recorded:
    """A reply of which nothing is known yet."""
    return Recorded(0, (), "", [], [], False, "client left")


def ended(into: Recorded, error: BaseException | None) -> None:
    """The body is over: at its end, or because of this."""
    if error is None:
        into.end = "eof"
    elif isinstance(error, GeneratorExit):
        into.end = "eof" if _has_all(into) else "client left"
    else:
        broke(into, error)


def broke(into: Recorded, error: BaseException) -> None:
    """What ended a reply early: a failure, or (cancelled, interrupted, closed) the agent's own leaving."""
    if isinstance(error, Exception):
        into.end = "broken"
        into.error = f"{type(error).__name__}: {error}"[:2000]
    else:
        into.end = "client left"
        if not into.status:
            into.error = "the agent left before a reply came"


def so_far(reply: Recorded) -> Recorded:
    """A copy that late chunks do not reach."""
    return replace(reply, chunks=list(reply.chunks), at_ms=list(reply.at_ms))


def _has_all(reply: Recorded) -> bool:
    """Whether every announced byte passed: some clients stop reading at the length rather than at the end."""
    length = header(reply.headers, "content-length")
    return length is not None and length.isdecimal() and sum(map(len, reply.chunks)) >= int(length)


def differ(world: Recorded, reply: Recorded) -> bool:
    """Whether the agent saw something else than the world said; how a body was cut into chunks makes no difference."""

    def head(of: Recorded) -> tuple[object, ...]:
        return of.status, of.reason, of.headers, of.end, of.error

    return head(world) != head(reply) or (world.chunks != reply.chunks and world.body != reply.body)


def keep_upload(exchange: Exchange, upload: object) -> None:
    """Keep what was seen of a request body that was streamed, else note that it is not on the tape.

    Args:
        exchange: of that request.
        upload: the body; one that the seam watched has its bytes in `seen`.
    """
    seen = getattr(upload, "seen", None)
    if isinstance(seen, (bytes, bytearray)):
        exchange.body = bytes(seen)
    else:
        streamed = "the request body was streamed by the agent and is not on the tape"
        exchange.note = "; ".join(filter(None, (streamed, exchange.note)))
