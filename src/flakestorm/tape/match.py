"""Which recorded exchange answers a request, or why none does.

A request finds the recorded ones with its fingerprint by one look into a table, exact ones first, and takes the next
that no request has had yet: of its own lane, else of a lane that nobody stands for, else of any; those of lanes that
are named by who started them go to such lanes first, and the others to the others. What is renamed
must be so consistently: over the whole run one volatile token stands for one, and what a recorded reply brought into
the run (it was served as recorded) stands for itself.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from flakestorm.core.call import Call
from flakestorm.tape.difference import differences
from flakestorm.tape.fingerprint import Asked, Request, Requests
from flakestorm.tape.foreseen import Entry, Foreseen, Seen
from flakestorm.tape.lanes import Lanes
from flakestorm.tape.likeness import alike
from flakestorm.tape.model import Exchange, repeats
from flakestorm.tape.names import Names
from flakestorm.tape.tokens import Span, Token, Tokens

__all__ = ["MODES", "Entry", "Match", "Matcher", "Mode", "Outcome"]

Mode = Literal["renamed", "strict", "scored"]
MODES: tuple[Mode, ...] = ("renamed", "strict", "scored")

Outcome = Literal["exact", "renamed", "tolerated", "reordered", "diverged", "extra"]
"""What became of a request. `reordered` was answered, but not in the recorded order; the last two were not."""

_PLACEHOLDER = re.compile(rb"(\[secret:[0-9a-f]{8}\])")
_MANY_HIDDEN = 100  # placeholders in one text
_TRIES = 1000  # of entries with the same fingerprint, whose tokens may still disagree


class Match(NamedTuple):
    """What became of one request.

    Args:
        outcome: see `Outcome`.
        entry: what answers it; of a request that nothing answers, the nearest.
        details: the tokens that were renamed, or the differences to the nearest.
        rpc: the recorded and the present number of a JSON-RPC message, where they differ.
        verbatim: whether the request is known to be the recorded one, byte by byte.
    """

    outcome: Outcome
    entry: Entry | None
    details: tuple[str, ...] = ()
    rpc: Mapping[str, str] | None = None
    verbatim: bool = False


_match = tuple.__new__  # without the detour by way of the class, which is Python


class Matcher:
    """Matches the requests of one replay. Not to be called by two threads at once.

    Args:
        exchanges: what was recorded, in any order.
        mode: `renamed`, `strict` or `scored`.
        spans: when the recording and the replay took place; see `Tokens`.
        threads: whether lanes are threads; see `Lanes`.
    """

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        *,
        mode: Mode = "renamed",
        spans: Iterable[Span] = (),
        threads: bool = True,
    ) -> None:
        self.mode = mode
        self._tokens = Tokens(tuple(spans))
        self._requests = Requests(self._tokens)
        self.entries = sorted(map(self._entry, exchanges), key=lambda entry: entry.n)
        self.lanes = Lanes(self.entries, threads=threads)
        self._exact: dict[bytes, _Row] = {}
        self._renamed: dict[bytes, _Row] = {}
        self._hard: dict[tuple[str, ...], _Row] = {}
        for entry in self.entries:
            self._exact.setdefault(entry.asked.canonical, _Row()).add(entry)
            self._renamed.setdefault(entry.asked.renamed, _Row()).add(entry)
            self._hard.setdefault(entry.asked.hard, _Row()).add(entry)
        self._names = Names()
        self._foreseen = Foreseen(self.entries)

    def match(self, request: Request, lane: str, call: Call | None = None, version: int = 0) -> Match:
        """What answers this request, which from now on is answered.

        Args:
            lane: of the replay.
            call: what the request was told of, to foresee the next one; it need not be given.
            version: of what is secret, when it was told.
        """
        asked = self._requests.read(request)
        found = self._find(self._exact.get(asked.canonical), asked, lane)
        if found is None and self.mode != "strict":
            found = self._find(self._renamed.get(asked.renamed), asked, lane)
        if call is not None:
            if found is not None and found[0].asked.canonical == asked.canonical:
                self._foreseen.was(call, found[0], version)
            else:
                self._foreseen.forget(call)
        if found is not None:
            entry, pairs, rpc = found
            renamed = tuple(f"{old} -> {new}" for old, new in pairs.items() if old != new)
            outcome: Outcome = "exact" if entry.asked.canonical == asked.canonical else "renamed"
            return self._serve(entry, lane, outcome, renamed, rpc)
        if self.mode == "scored" and (liked := alike(asked, self._waiting(asked))) is not None:
            entry, score = liked
            told = (f"score {score:.2f}", *self._told(entry.asked, asked))
            return self._serve(entry, lane, "tolerated", told, _rpc(entry.asked, asked))
        return self._refuse(asked)

    def seen(self, call: Call, version: int) -> Seen | None:
        """The call, if it is known by its bytes which recorded request it is, unless there is a secret in it."""
        return self._foreseen.seen(call, version)

    def match_seen(self, call: Call, seen: Seen, version: int) -> Match | None:
        """As `match`, for a call that was seen and holds no secret; None where nothing is left that answers it."""
        asked = seen.entry.asked
        row = self._exact[asked.canonical]
        if row.first(self.lanes.bound(call.lane)) is seen.entry and self._names.asked_later(asked):
            self._foreseen.was(call, seen.entry, version, verbatim=True)
            return self._serve(seen.entry, call.lane, "exact", (), None, verbatim=True)
        found = self._find(row, asked, call.lane)
        if found is None:
            return None
        entry, pairs, rpc = found
        if entry is seen.entry:
            self._foreseen.was(call, entry, version, verbatim=True)
        else:
            self._foreseen.forget(call)
        renamed = tuple(f"{old} -> {new}" for old, new in pairs.items() if old != new)
        return self._serve(entry, call.lane, "exact", renamed, rpc)

    def heard(self, text: str) -> list[tuple[int, int, str]]:
        """A recorded reply is to be served: what it brings stands for itself from now on.

        Returns:
            Begin, end and replacement of each token that stands for another one in this run.
        """
        return self._names.heard(text)

    def heard_as_recorded(self, chunks: Sequence[bytes]) -> bool:
        """As `heard`, of a body in pieces; whether there is nothing to be replaced, which is often known unseen."""
        return self._names.heard_later(chunks)

    def hidden(self, entry: Entry, request: Request) -> Iterator[tuple[bytes, bytes]]:
        """What stands in a request where the entry nearest to it has a placeholder: (placeholder, text) pairs."""
        here = dict(self._requests.read(request).parts)
        for name, group in entry.asked.parts:
            for old, new in zip(group, here.get(name, ()), strict=False):
                if old is not new and b"[secret:" in old.raw:
                    yield from _uncovered(old.raw, new.raw)

    def same(self, recorded: str, present: str) -> bool:
        """Whether two outputs say the same, volatile tokens renamed as in the run's requests."""
        old: list[Token] = []
        new: list[Token] = []
        if self._tokens.text(recorded, old) != self._tokens.text(present, new):
            return False
        return recorded == present or self._names.agree(old, new) is not None

    def missing(self) -> list[Entry]:
        """The recorded requests that were not made; those are left out that a diverged one came nearest to."""
        return [entry for entry in self.entries if not entry.used and not entry.blamed]

    def _entry(self, exchange: Exchange) -> Entry:
        return Entry.of(exchange, self._requests.read(Request.of(exchange), repeats(exchange)))

    def _find(self, row: _Row | None, asked: Asked, lane: str) -> tuple[Entry, dict[str, str], dict[str, str]] | None:
        if row is None:
            return None
        named = "." in lane
        for entry in islice(row.waiting(self.lanes.bound(lane), self.lanes.taken, named=named), _TRIES):
            if entry.asked is asked and self._names.asked_later(asked):
                return entry, {}, {}
            pairs = self._names.fit(entry.asked, asked)
            if pairs is not None:
                self._names.learn(pairs)
                return entry, pairs, _rpc(entry.asked, asked)
        return None

    def _serve(
        self,
        entry: Entry,
        lane: str,
        outcome: Outcome,
        details: tuple[str, ...],
        rpc: Mapping[str, str] | None,
        *,
        verbatim: bool = False,
    ) -> Match:
        entry.used = True
        if self.lanes.served(lane, entry):
            outcome = "reordered"
        return _match(Match, (outcome, entry, details, rpc or None, verbatim))

    def _waiting(self, asked: Asked) -> list[Entry]:
        row = self._hard.get(asked.hard)
        return [] if row is None else [entry for entry in row.all if not entry.used]

    def _refuse(self, asked: Asked) -> Match:
        row = self._renamed.get(asked.renamed)
        if row is not None and all(entry.used for entry in row.all):
            last = row.all[-1]
            told = f"the tape has this request {len(row.all)} times, and all were answered"
            return Match("extra", last, (told,), _rpc(last.asked, asked) or None)
        unused = [entry for entry in self.entries if not entry.used]
        waiting = [entry for entry in unused if not entry.blamed] or unused
        if not waiting:
            return Match("extra", None, ("every recorded request was answered already",))
        skeleton = asked.skeleton
        same = [entry for entry in waiting if entry.asked.hard == asked.hard]
        near = next((entry for entry in same if entry.asked.skeleton == skeleton), None)
        near = near or (same or [e for e in waiting if e.asked.hard[0] == asked.hard[0]] or waiting)[0]
        near.blamed = True
        return Match("diverged", near, tuple(self._told(near.asked, asked)))

    def _told(self, old: Asked, new: Asked) -> list[str]:
        names = ("kind", "name", "method", "URL", "credential")
        found = [
            f"{name}: {_plain(one)} -> {_plain(other)}" if name != "credential" else "the credential is another one"
            for name, one, other in zip(names, old.hard, new.hard, strict=True)
            if one != other
        ]
        found += [f"header {line}" for line in differences(dict(old.headers), dict(new.headers))]
        found += differences(old.document(), new.document())
        return found or ["its volatile tokens (ids, times) stand for others than before in this run"]


class _Row:
    """Recorded requests that look alike, in order."""

    __slots__ = ("_fresh", "_lanes", "all")

    def __init__(self) -> None:
        self.all: list[Entry] = []
        self._lanes: dict[str, deque[Entry]] = {}
        self._fresh: tuple[deque[Entry], deque[Entry]] = deque(), deque()  # those of named lanes apart

    def add(self, entry: Entry) -> None:
        self.all.append(entry)
        self._lanes.setdefault(entry.lane, deque()).append(entry)
        self._fresh["." in entry.lane].append(entry)

    def first(self, lane: str | None) -> Entry | None:
        """The next one of this lane without a request, if there is one."""
        own = self._lanes.get(lane) if lane is not None else None
        if own is None:
            return None
        _drop(own)
        return own[0] if own else None

    def waiting(self, lane: str | None, taken: set[str], *, named: bool = False) -> Iterator[Entry]:
        """Those without a request: of this lane first, then of lanes that nobody stands for, then of any. What was used
        is dropped on the way, so that the first is found at once however many there were.

        Args:
            named: whether those of lanes with a name come before the others.
        """
        own = self._lanes.get(lane) if lane is not None else None
        if own is not None:
            _drop(own)
            yield from (entry for entry in own if not entry.used)
        rows = self._fresh[named], self._fresh[not named]
        for row in rows:
            _drop(row)
            yield from (entry for entry in row if not entry.used and entry.lane not in taken)
        for row in rows:
            yield from (entry for entry in row if not entry.used and entry.lane in taken and entry.lane != lane)


def _drop(row: deque[Entry]) -> None:
    while row and row[0].used:
        row.popleft()


def _uncovered(old: bytes, new: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The placeholders of a text, each with what another one has in its place, where all around them is equal."""
    pieces = _PLACEHOLDER.split(old)
    if len(pieces) > 2 * _MANY_HIDDEN or not (new.startswith(pieces[0]) and new.endswith(pieces[-1])):
        return
    at, last = len(pieces[0]), len(new) - len(pieces[-1])
    for number in range(1, len(pieces), 2):
        stands, after = pieces[number : number + 2]
        over = last if number == len(pieces) - 2 else new.find(after, at, last)
        if over < at:
            return
        yield stands, new[at:over]
        at = over + len(after)


def _rpc(old: Asked, new: Asked) -> dict[str, str]:
    """The numbers of a JSON-RPC message, recorded and present, where they differ."""
    if len(old.parts) != len(new.parts):
        return {}
    numbered = [
        (one, two)
        for (_, group), (_, other) in zip(old.parts, new.parts, strict=True)
        if group is not other
        for a, b in zip(group, other, strict=False)
        if a is not b
        for one, two in zip(a.tokens, b.tokens, strict=False)
        if one.kind == "rpc"
    ]
    return {one.text: two.text for one, two in numbered if one.text != two.text}


def _plain(text: str) -> str:
    """With each mark as `<kind>`."""
    return re.sub("\0(\\w+)\0", r"<\1>", text)
