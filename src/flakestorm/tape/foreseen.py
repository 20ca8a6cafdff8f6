"""The request that comes next on a lane, known by its very bytes.

Most replays ask what was recorded, to the letter. So where a lane's last request to an address was recorded in the
bytes in which it came, the next one is compared with the bytes of the recorded request that followed: what it repeats
with the live request before it, which is a comparison of memory, and what is new in it with what the tape says is new.
If all is equal, then whatever would be read from it is what was read from the recorded one, and nothing is parsed or
hashed.

Only that is decided here: whether a request is the very one that was recorded there. Which entry then answers it is
decided by `match`, as for any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flakestorm.core.call import Call, Headers, track
from flakestorm.core.site import Site
from flakestorm.tape.copied import Text
from flakestorm.tape.fingerprint import Asked
from flakestorm.tape.heads import is_silent
from flakestorm.tape.model import Exchange, Recorded, kept
from flakestorm.tape.naming import is_secret_header
from flakestorm.wire.mcp.protocol import to_client

__all__ = ["Entry", "Foreseen", "Seen"]

_PLACES = 64  # of which the last call is kept
_LARGE = 64 << 10  # bytes that are kept of a body, besides what it repeats


@dataclass(slots=True, eq=False)
class Entry:
    """A recorded exchange that waits for its request.

    Args:
        url: of the request, as the tape has it.
        text: its body, where the tape keeps that as what others repeat, or as what repeats others.
        repeats, rest: how many bytes of what that is made from it begins with, and those after them; None where there
            are too many.
        then: the next one of its lane to the same address, with the same header fields as far as they count; where its
            lane has none, the first one of the next lane that `track` takes for the same.
        said: what the exchange adds to the digest of a run, where that is known.
        spoken: the body of what an MCP server said to its client, which a replay has to say in its place.
    """

    n: int
    site: Site
    lane: str
    t_ms: float
    end_ms: float
    asked: Asked
    reply: Recorded
    url: str = ""
    text: Text | None = None
    repeats: int = 0
    rest: bytes | None = None
    then: Entry | None = field(default=None, repr=False)
    said: bytes = b""
    spoken: bytes = b""
    used: bool = False
    blamed: bool = False

    @classmethod
    def of(cls, exchange: Exchange, asked: Asked) -> Entry:
        """The entry of an exchange whose request was read."""
        body, held = exchange.body, kept(exchange)
        text = held if isinstance(held, Text) else None
        repeats = 0 if text is None else text.repeats
        rest = body[repeats:] if len(body) - repeats <= _LARGE else None
        if rest is None and repeats == 0:
            text = None
        at = exchange.t_ms, exchange.t_ms + exchange.duration_ms
        place = exchange.n, exchange.site, exchange.lane
        entry = cls(*place, *at, asked, exchange.reply, exchange.url, text, repeats, rest)
        if exchange.kind == "mcp" and to_client(exchange.method, exchange.url):
            entry.spoken = body
        return entry


class Seen(NamedTuple):
    """A live request that was foreseen, if there is no secret in what is new in it.

    Args:
        entry: the recorded one that it is.
        before: the body of the live request before it, of its lane and to its address.
        same: how many bytes of that this one is known to begin with.
        values: of header fields that the one before did not have; they say nothing about what is asked.
    """

    entry: Entry
    before: bytes
    same: int
    values: list[str]


_seen = tuple.__new__  # without the detour by way of the class, which is Python


class Foreseen:
    """What is foreseen for each lane of a replay.

    Args:
        entries: what was recorded, in order of arrival.
    """

    __slots__ = ("_last",)

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._last: dict[tuple[str, ...], tuple[Call, Entry, int, bool]] = {}
        last: dict[tuple[object, ...], Entry] = {}
        for entry in entries:
            where = entry.url, entry.asked.hard, entry.asked.headers
            place, shared = (entry.lane, *where), (track(entry.lane), *where)
            if (before := last.get(place)) is not None or (
                (before := last.get(shared)) is not None and before.then is None
            ):
                before.then = entry
            last[place] = last[shared] = entry

    def seen(self, call: Call, version: int) -> Seen | None:
        """The call, if it is foreseen.

        Args:
            version: of what is known to be secret; what was told of the last call's head goes for an equal one only
                where nothing was learned since.
        """
        last = self._last.get(_place(call))
        if last is None:
            last = self._last.get(_shared(call)) if "." in call.lane else None
            if last is None:
                return None
        before, told, known, verbatim = last
        entry = told.then
        if entry is None or known != version or (rest := entry.rest) is None:
            return None
        body, same = call.body, entry.repeats
        if not same:
            if body != rest:
                return None
        elif not (
            verbatim and len(body) == same + len(rest) and entry.text is not None and entry.text.base is told.text
            and body.endswith(rest) and _begins(call, before.body, same)
        ):  # fmt: skip
            return None
        values = _new_values(call.headers, before.headers)
        return None if values is None else _seen(Seen, (entry, before.body, same, values))

    def was(self, call: Call, entry: Entry, version: int, *, verbatim: bool = False) -> None:
        """The call asks what the entry says, in its words or in words to the same effect.

        Args:
            version: as for `seen`, after the call was told.
            verbatim: whether its body is known to be the recorded one.
        """
        place = _place(call)
        if place not in self._last and len(self._last) >= _PLACES:
            self._last.clear()
        text = entry.text
        if not verbatim and text is not None and text.length == len(call.body):
            verbatim = text.data() == call.body
        self._last[place] = last = call, entry, version, verbatim
        if "." in call.lane:
            self._last[_shared(call)] = last

    def forget(self, call: Call) -> None:
        """The call is another one than those that were recorded."""
        self._last.pop(_place(call), None)
        if "." in call.lane:
            self._last.pop(_shared(call), None)


def _begins(call: Call, before: bytes, same: int) -> bool:
    """Whether a call's body begins with so much of an earlier one."""
    body, at = call.body, 0
    if call.repeats is not None:
        repeats, of, known = call.repeats
        if repeats is body and of is before:
            at = min(known, same)
    return body.startswith(memoryview(before)[at:same], at)


def _place(call: Call) -> tuple[str, ...]:
    """Where calls may go on from one another."""
    return call.lane, call.url, call.method, call.kind, call.name


def _shared(call: Call) -> tuple[str, ...]:
    """The same of all lanes that `track` takes for one."""
    return track(call.lane), call.url, call.method, call.kind, call.name


def _new_values(now: Headers, before: Headers) -> list[str] | None:
    """The values that these fields have and those before had not; None where one of them may mean something."""
    if now is before or now == before:
        return []
    if len(now) != len(before):
        return None
    values: list[str] = []
    for field_, known in zip(now, before, strict=True):
        if field_ is not known and field_ != known:
            name, value = field_
            if name != known[0] or not is_silent(name) or is_secret_header(name):
                return None
            values.append(value)
    return values
