"""The digest of a run: what was asked and said, as one hash, by which two runs are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from flakestorm.tape.growing import Hashes
from flakestorm.tape.lines import FILE
from flakestorm.tape.model import Exchange, repeats

__all__ = ["Said", "digest"]


def digest(exchanges: Iterable[Exchange], output: str, *, form: int = FILE) -> str:
    """What was asked and said, as one hexadecimal SHA-256; see `Said`.

    Args:
        form: the number of the file's form; the first one hashed requests in another way, and up to the second the
            names of lanes counted, which are given out by arrival.
    """
    said = Said(form)
    for exchange in exchanges:
        said.add(exchange)
    return said.total(output)


class Said:
    """What was asked and said, gathered exchange by exchange into one hash; no exchange is kept.

    It covers each request's method, URL and body, each reply's status and body as the agent saw it, their order within
    each lane, and the agent's output. Times, headers, the lanes' names and the order between them are left out, so two
    runs in which the same things were said have the same digest, whichever lane came first.
    """

    __slots__ = ("_form", "_hashes", "_lanes")

    def __init__(self, form: int = FILE) -> None:
        self._lanes: dict[str, list[tuple[int, bytes]]] = {}
        self._form, self._hashes = form, Hashes()

    def add(self, exchange: Exchange, request: bytes = b"") -> bytes:
        """An exchange that has ended; in any order.

        Args:
            request: the SHA-256 of its request body, if known.

        Returns:
            What it adds.
        """
        reply = exchange.reply
        if not request:
            body = exchange.body
            request = body if self._form == 1 else self._hashes.of(exchange.lane, body, repeats(exchange))
        asked = f"{exchange.site.kind} {exchange.method} {exchange.url}".encode("utf-8", "replace")
        said = f"{reply.status} {reply.error or ''}".encode("utf-8", "replace")
        answer = reply.body
        lengths = b"%d %d %d %d\n" % (len(asked), len(request), len(said), len(answer))
        each = hashlib.sha256(b"".join((lengths, asked, request, said, answer))).digest()
        self.note(exchange.lane, exchange.n, each)
        return each

    def note(self, lane: str, n: int, each: bytes) -> None:
        """An exchange of which it is known what it adds."""
        self._lanes.setdefault(lane, []).append((n, each))

    def total(self, output: str) -> str:
        """The hash, in hexadecimal, with the agent's output."""
        total = hashlib.sha256()
        states: list[bytes] = []
        for lane, said in sorted(self._lanes.items()):
            state = hashlib.sha256(lane.encode("utf-8", "replace") if self._form < 3 else b"")
            for _, each in sorted(said):
                state.update(each)
            states.append(state.digest())
        for lane_state in states if self._form < 3 else sorted(states):
            total.update(lane_state)
        total.update(output.encode("utf-8", "replace"))
        return total.hexdigest()
