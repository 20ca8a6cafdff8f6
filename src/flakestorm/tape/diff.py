"""What differs between two recorded runs: what first, and what followed.

Exchanges are put side by side within each lane: those that ask the same first, then, between them, those that ask the
same thing (kind and name) otherwise. As in a replay, a volatile token of one run may stand for one of the other, as
long as it does so all the way; of a model's reply its meaning is compared, of others status and body.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

import orjson

from flakestorm.core.site import Site
from flakestorm.tape.difference import differences
from flakestorm.tape.document import said
from flakestorm.tape.fingerprint import Asked, Request, Requests
from flakestorm.tape.lanes import single
from flakestorm.tape.model import Exchange
from flakestorm.tape.names import Names
from flakestorm.tape.tokens import Span, Token, Tokens
from flakestorm.wire.encoding import decode_body

__all__ = ["INPUT", "OUTPUT", "Diff", "Outcome", "Run", "Step", "diff"]

Outcome = Literal["same", "changed", "missing", "added"]

INPUT, OUTPUT = Site("agent", "input", 1), Site("agent", "output", 1)
"""The sites of what the agent is asked, and of what it answers."""

_JSON = (("content-type", "application/json"),)


@dataclass(frozen=True, slots=True)
class Run:
    """One of the two.

    Args:
        exchanges: in order of arrival.
        input, output, error: of the agent.
    """

    exchanges: Sequence[Exchange]
    input: str | None = None
    output: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One exchange of each run, or of one of them alone; or what the agent was asked, or answered.

    Args:
        outcome: `missing` is in the first run only, `added` in the second only.
        a, b: the exchanges; both None for input and output.
        site: in the first run, or in the second where it is added.
        what: what differs: `request`, `reply`, `input`, `output`.
        details: where, in words.
    """

    outcome: Outcome
    site: Site
    a: Exchange | None = None
    b: Exchange | None = None
    what: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diff:
    """Two runs, side by side, in the order of the first."""

    steps: tuple[Step, ...]

    @property
    def first(self) -> Step | None:
        """The first difference; None where there is none."""
        return next((step for step in self.steps if step.outcome != "same"), None)

    @property
    def equal(self) -> bool:
        return self.first is None

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """How many steps there are of each outcome."""
        return Counter(step.outcome for step in self.steps)


@dataclass(slots=True)
class _Placed:
    """Where an exchange stands in its run."""

    n: int
    lane: str
    t_ms: float
    end_ms: float

    @classmethod
    def of(cls, exchange: Exchange) -> _Placed:
        return cls(exchange.n, exchange.lane, exchange.t_ms, exchange.t_ms + exchange.duration_ms)


@dataclass(slots=True)
class _Read:
    """An exchange, read."""

    exchange: Exchange
    asked: Asked
    place: int
    other: _Read | None = field(default=None, repr=False)


def diff(a: Run, b: Run, *, spans: Sequence[Span] = ()) -> Diff:
    """Put two runs side by side.

    Args:
        a, b: the runs.
        spans: when they took place; see `Tokens`.
    """
    tokens = Tokens(tuple(spans))
    reading = _Reading(tokens)
    rows = [[reading.exchange(n, exchange) for n, exchange in enumerate(run.exchanges)] for run in (a, b)]
    for one, two in _lanes(rows[0], rows[1]):
        _align(one, two)
    steps = [*reading.texts("input", INPUT, a.input or "", b.input or "")]
    steps += [reading.step(one, two) for one, two in _merged(rows[0], rows[1])]
    ends = [f"{run.output}\n{run.error}" if run.error else run.output for run in (a, b)]
    steps += reading.texts("output", OUTPUT, *ends)
    return Diff(tuple(steps))


class _Reading:
    """Reads both runs by the same tokens, and remembers which of the one stands for which of the other."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens, self._requests, self._names = tokens, Requests(tokens), Names()

    def exchange(self, place: int, exchange: Exchange) -> _Read:
        return _Read(exchange, self._requests.read(Request.of(exchange)), place)

    def texts(self, what: str, site: Site, old: str, new: str) -> Iterator[Step]:
        """The step of two texts; none where both are empty."""
        if not old and not new:
            return
        before: list[Token] = []
        now: list[Token] = []
        same = self._tokens.text(old, before) == self._tokens.text(new, now)
        pairs = self._names.agree(before, now) if same else None
        if old == new or pairs is not None:
            self._names.learn(pairs or {})
            yield Step("same", site)
        else:
            yield Step("changed", site, None, None, (what,), tuple(differences(old, new)))

    def step(self, one: _Read | None, two: _Read | None) -> Step:
        if one is None:
            return _alone("added", two)
        if two is None:
            return _alone("missing", one)
        what: list[str] = []
        details: list[str] = []
        for name, (old, new) in {
            "request": (one.asked, two.asked),
            "reply": (self._reply(one.exchange), self._reply(two.exchange)),
        }.items():
            told = self._told(old, new)
            if told:
                what.append(name)
                details += [f"{name} {line}" for line in told]
        x, y = one.exchange, two.exchange
        return Step("changed" if what else "same", x.site, x, y, tuple(what), tuple(details))

    def _told(self, old: Asked, new: Asked) -> list[str]:
        if old.renamed == new.renamed and (pairs := self._names.fit(old, new)) is not None:
            self._names.learn(pairs)
            return []
        told = [f"{one} -> {other}" for one, other in zip(old.hard[1:4], new.hard[1:4], strict=True) if one != other]
        told += [f"header {line}" for line in differences(dict(old.headers), dict(new.headers))]
        told += differences(old.document(), new.document())
        return told or ["its ids or times stand for others than before in this run"]

    def _reply(self, exchange: Exchange) -> Asked:
        """What a reply says, in the form of a request, which is what can be read."""
        reply = exchange.reply
        value: dict[str, Any] = {"status": reply.status, "end": reply.end, "stream": reply.stream}
        meaning = said(exchange, reply) if exchange.kind == "llm" else None
        if meaning is not None:
            calls = [{"name": call.name, "arguments": call.arguments} for call in meaning.tool_calls]
            value |= {"text": meaning.text, "tool_calls": calls, "finish": meaning.finish, "error": meaning.error}
        else:
            body = decode_body(reply.body, reply.headers)
            try:
                value["body"] = orjson.loads(body)
            except orjson.JSONDecodeError:
                value["body"] = body.decode("utf-8", "replace")
        if not reply.status:
            value["error"] = reply.error
        return self._requests.read(Request(exchange.kind, exchange.name, "REPLY", "", _JSON, orjson.dumps(value)))


def _alone(outcome: Outcome, read: _Read | None) -> Step:
    if read is None:
        raise ValueError("a step is of one run at least")
    x = read.exchange
    return Step(outcome, x.site, a=x) if outcome == "missing" else Step(outcome, x.site, b=x)


def _lanes(one: list[_Read], two: list[_Read]) -> Iterator[tuple[list[_Read], list[_Read]]]:
    """The lanes of both runs that do most of the same; all is one lane where neither run did two things at once."""
    if all(single([_Placed.of(read.exchange) for read in row]) for row in (one, two)):
        yield one, two
        return
    before, now = _by_lane(one), _by_lane(two)
    says, means = ([Counter(read.asked.renamed for read in row) for row in lanes] for lanes in (before, now))
    likeness = [(-(x & y).total(), m, n) for m, x in enumerate(says) for n, y in enumerate(means)]
    taken: tuple[set[int], set[int]] = set(), set()
    for _, m, n in sorted(likeness):
        if m not in taken[0] and n not in taken[1]:
            taken[0].add(m)
            taken[1].add(n)
            yield before[m], now[n]


def _by_lane(row: list[_Read]) -> list[list[_Read]]:
    lanes: dict[str, list[_Read]] = {}
    for read in row:
        lanes.setdefault(read.exchange.lane, []).append(read)
    return list(lanes.values())


def _align(one: list[_Read], two: list[_Read]) -> None:
    """Pair those of one lane that belong together."""
    for rest, new in _paired(one, two, lambda read: read.asked.renamed):
        deque(_paired(rest, new, lambda read: (read.exchange.kind, read.exchange.name)), 0)  # the rest stays alone


def _paired(
    one: list[_Read], two: list[_Read], key: Callable[[_Read], Hashable]
) -> Iterator[tuple[list[_Read], list[_Read]]]:
    """Pair stretches of the same keys; gives those between them."""
    keys = list(map(key, one)), list(map(key, two))
    for how, a, b, c, d in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        if how != "equal":
            yield one[a:b], two[c:d]
            continue
        for x, y in zip(one[a:b], two[c:d], strict=True):
            x.other, y.other = y, x


def _merged(one: list[_Read], two: list[_Read]) -> Iterator[tuple[_Read | None, _Read | None]]:
    """All steps in the order of the first run; what is added stands before what came after it in the second."""
    at = 0
    for read in one:
        upto = at if read.other is None else max(at, read.other.place)
        yield from ((None, each) for each in two[at:upto] if each.other is None)
        at = upto
        yield read, read.other
    yield from ((None, each) for each in two[at:] if each.other is None)
