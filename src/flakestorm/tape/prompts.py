"""What MCP servers said of themselves in a recorded run, and when: a replay says it again in their place.

On a pipe a server logs, announces changes, and asks its client for a sample, for its roots or for what the user wants,
all of it while it is at work for the client or right after. A replay has no server at work, so each of these messages
goes with the client's message that it followed: while that was under way, or else after its answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urljoin

from flakestorm.core.call import Call
from flakestorm.tape.match import Entry
from flakestorm.wire.mcp.protocol import LATER, Mcp, housekeeping

__all__ = ["Prompt", "openings_of", "prompts_of"]

_PLACE = re.compile(rb"^(data: ?)/r/[^/\s]+/p/[^/\s]+", re.MULTILINE)  # of the recorded run, on its gateway
_HEADERS = (("content-type", "application/json"),)


class Prompt(NamedTuple):
    """A message that a server said of itself.

    Args:
        entry: as it was recorded.
        later: whether the message it goes with had been answered by then.
    """

    entry: Entry
    later: bool

    def call(self, lane: str, body: bytes) -> Call:
        """The message, to be said to the client.

        Args:
            lane: of the connection.
            body: its text, with the secrets that are known here.
        """
        method, entry = LATER if self.later else "CALL", self.entry
        return Call(method, entry.url, _HEADERS, body, kind="mcp", name=entry.site.name, wire=Mcp.name, lane=lane)


def prompts_of(entries: Iterable[Entry]) -> dict[int, list[Prompt]]:
    """What servers said of themselves, by the number of the client's message that it goes with.

    Args:
        entries: what was recorded, in order of arrival.
    """
    entries = [entry for entry in entries if entry.site.kind == "mcp"]
    spoken = [entry for entry in entries if entry.spoken]
    if not spoken:
        return {}
    asked: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if not entry.spoken:
            asked.setdefault((entry.url, entry.lane), []).append(entry)
    found: dict[int, list[Prompt]] = {}
    for entry in spoken:
        url = entry.url.removesuffix("/client").removesuffix("#client")
        parent, later = _parent(entry, asked.get((url, entry.lane), []))
        if parent is not None:
            found.setdefault(parent.n, []).append(Prompt(entry, later))
    return found


def openings_of(entries: Iterable[Entry]) -> dict[int, bytes]:
    """The event by which each recorded stream of MCP's HTTP+SSE transport began that the gateway held, by its number.

    What such a stream brought belongs to the messages that were posted, which are calls of their own.

    Args:
        entries: what was recorded.
    """
    entries = list(entries)
    posted = {entry.url for entry in entries if entry.site.kind == "mcp" and entry.asked.hard[2] == "CALL"}
    found: dict[int, bytes] = {}
    for entry in entries if posted else ():
        if entry.reply.stream and entry.reply.chunks and entry.reply.chunks[0].startswith(b"event: endpoint"):
            begins = entry.reply.body.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
            begins = _PLACE.sub(rb"\1", begins)
            data = begins.partition(b"data:")[2].strip().decode("utf-8", "replace")
            if urljoin(entry.url, data) in posted:
                found[entry.n] = begins + b"\n\n"
    return found


def _parent(entry: Entry, asked: list[Entry]) -> tuple[Entry | None, bool]:
    """The client's message that this one goes with, and whether it had been answered."""
    before = [one for one in asked if one.n < entry.n]
    if not before:  # nothing had been asked: as soon as something is
        return (asked[0] if asked else None), False
    under_way = [one for one in before if one.end_ms >= entry.t_ms and one.reply.status != 202]
    working = [one for one in under_way if not housekeeping(one.site.name)] or under_way
    return (working[-1], False) if working else (before[-1], True)
