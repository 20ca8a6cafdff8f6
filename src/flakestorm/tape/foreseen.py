"""The request that comes next on a lane, known by its very bytes.

Most replays ask what was recorded, to the letter. So where a lane's last request was recorded in the bytes in which it
came, the next one is compared with the bytes of the recorded request that followed: what it repeats with the live
request before it, which is a comparison of memory, and what is new in it with what the tape says is new. If all is
equal, then whatever would be read from it is what was read from the recorded one, and nothing is parsed or hashed.

Only that is decided here: whether a request is the very one that was recorded there. Which entry then answers it is
decided by `match`, as for any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flakestorm.core.call import Call, Headers
from flakestorm.core.site import Site
from flakestorm.tape.fingerprint import Asked, is_silent
from flakestorm.tape.model import Exchange, Recorded, kept
from flakestorm.tape.naming import is_secret_header
from flakestorm.tape.texts import Text

__all__ = ["Entry", "Foreseen", "Seen"]

_LANES = 64  # of which the last call is kept
_LARGE = 64 << 10  # bytes of a body that is kept though it repeats no other


@dataclass(slots=True, eq=False)
class Entry:
    """A recorded exchange that waits for its request.

    Args:
        url, body: of the request, as the tape has them; None for a body that would take much memory.
        then: the next one of its lane, where it goes to the same address with the same header fields.
    """

    n: int
    site: Site
    lane: str
    t_ms: float
    end_ms: float
    asked: Asked
    reply: Recorded
    url: str = ""
    body: Text | bytes | None = None
    then: Entry | None = field(default=None, repr=False)
    used: bool = False
    blamed: bool = False

    @classmethod
    def of(cls, exchange: Exchange, asked: Asked) -> Entry:
        """The entry of an exchange whose request was read."""
        body = kept(exchange)
        if len(body) > _LARGE and (isinstance(body, bytes) or body.base is None):
            body = None
        end_ms = exchange.t_ms + exchange.duration_ms
        return cls(
            exchange.n, exchange.site, exchange.lane, exchange.t_ms, end_ms, asked, exchange.reply, exchange.url, body
        )


class Seen(NamedTuple):
    """A live request that was foreseen, if there is no secret in what is new in it.

    Args:
        entry: the recorded one that it is.
        before: the body of the live request before it, on its lane.
        same: how many bytes of that this one is known to begin with.
        values: of header fields that the one before did not have; they say nothing about what is asked.
    """

    entry: Entry
    before: bytes
    same: int
    values: list[str]


class Foreseen:
    """What is foreseen for each lane of a replay.

    Args:
        entries: what was recorded, in order of arrival.
    """

    __slots__ = ("_last",)

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._last: dict[str, tuple[Call, Entry, int, bool]] = {}
        last: dict[str, Entry] = {}
        for entry in entries:
            before, last[entry.lane] = last.get(entry.lane), entry
            if before is not None and before.url == entry.url and _same_head(before.asked, entry.asked):
                before.then = entry

    def seen(self, call: Call, version: int) -> Seen | None:
        """The call, if it is foreseen.

        Args:
            version: of what is known to be secret; what was told of the last call's head goes for an equal one only
                where nothing was learned since.
        """
        last = self._last.get(call.lane)
        if last is None:
            return None
        before, told, known, verbatim = last
        entry = told.then
        if (
            entry is None or known != version or entry.body is None
            or call.url != before.url or call.method != before.method
            or call.kind != before.kind or call.name != before.name
        ):  # fmt: skip
            return None
        values = _new_values(call.headers, before.headers)
        if values is None:
            return None
        body, recorded = call.body, entry.body
        if type(recorded) is bytes:
            return Seen(entry, before.body, 0, values) if body == recorded else None
        base = recorded.base
        if base is None:
            return Seen(entry, before.body, 0, values) if body == recorded.data() else None
        if not verbatim or base is not told.body:
            return None
        same = recorded.same(body, before.body)
        return None if same < 0 else Seen(entry, before.body, same, values)

    def was(self, call: Call, entry: Entry, version: int, *, verbatim: bool = False) -> None:
        """The call asks what the entry says, in its words or in words to the same effect.

        Args:
            version: as for `seen`, after the call was told.
            verbatim: whether its body is known to be the recorded one.
        """
        if call.lane not in self._last and len(self._last) >= _LANES:
            self._last.clear()
        recorded = entry.body
        if not verbatim and recorded is not None and len(recorded) == len(call.body):
            verbatim = (recorded if type(recorded) is bytes else recorded.data()) == call.body
        self._last[call.lane] = call, entry, version, verbatim

    def forget(self, lane: str) -> None:
        """The last call of this lane was another one."""
        self._last.pop(lane, None)


def _same_head(one: Asked, other: Asked) -> bool:
    return one.hard == other.hard and one.headers == other.headers


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
