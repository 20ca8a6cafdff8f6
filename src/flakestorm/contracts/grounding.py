"""`grounded`: what an answer states as fact occurs in what the agent was told.

Told means: its input, what the model was sent that the model did not write itself (instructions, the user's words, tool
results), and what tools and other services answered. What the model says in earlier turns, and what it writes into tool
calls, proves nothing: that is where inventions come from.

Where the model was told something besides text (a picture, a file, what its provider looked up), what the answer states
and no text told is inconclusive.

An answer may also do small sums with facts: a number is grounded if it is the sum, difference or product of two numbers
that stand in the answer and are grounded, the total of several that do, a rounding of a number that was told, or a
count up to ten. Longer calculations must come from a tool.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate, combinations, islice

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in
from flakestorm.contracts.evidence import plain, quote_around
from flakestorm.contracts.facts import Fact, facts
from flakestorm.contracts.output import SEARCH_CHARS, absent
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.tape.model import Exchange
from flakestorm.wire.besides_text import fetched, remembered, shown
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.protocols import wire_of

__all__ = ["grounded"]

_COUNTS = 10
_COUNTED = frozenset(map(str, range(_COUNTS + 1)))
_SHOWN = 5
_DIGITS = 24
"""Longer numbers are compared as they are written: nobody rounds them or counts with them."""
_OPERANDS = 60
"""Numbers of an answer that are tried in sums; pairs of more would be found for almost any number."""


@built_in("grounded", "forbids", evidence="output by tape")
def grounded(_spec: Invariant, run: RunView) -> Verdict:
    """The numbers, dates, times and ids in the answer occur in what the agent was told; see the module."""
    output = run.output[:SEARCH_CHARS]
    stated = [group for group in _groups(facts(output)) if not _counts(group[0])]
    if not stated:
        return absent(run, passed("the answer states no number, date or id"))
    told = _Told.of(run)
    unknown = [group for group in stated if not any(told.holds(fact) for fact in group)]
    sums = _sums(stated, unknown) if unknown else set()
    invented = [g[0] for g in unknown if g[0].kind != "number" or not _short(g[0]) or Decimal(g[0].value) not in sums]
    if not invented:
        return absent(run, passed(f"all {len(stated)} numbers, dates and ids in the answer were told to the agent"))
    which = ", ".join(f"{plain(f.text, 40)} ({_around(output, f)})" for f in invented[:_SHOWN])
    more = f" and {len(invented) - _SHOWN} more" if len(invented) > _SHOWN else ""
    if blind := told.blind or _unread(run):
        return inconclusive(f"{blind}, so nobody knows where the answer has this from: {which}{more}")
    return failed(f"{len(invented)} of {len(stated)} facts were never told to the agent: {which}{more}")


@dataclass(slots=True)
class _Told:
    """Everything that the agent was told."""

    numbers: set[str] = field(default_factory=set)
    dates: dict[str, set[str]] = field(default_factory=dict)
    """Month and day -> the years that were said with it."""
    times: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    text: str = ""
    blind: str = ""
    """Why there may be more."""
    values: frozenset[Decimal] = frozenset()
    endings: list[str] = field(default_factory=list)
    """The runs of digits in the text, each with a mark before it, from behind and in order."""
    _rounded: dict[int, set[Decimal]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: RunView) -> _Told:
        told = cls()
        texts = [turn.input for turn in run.turns] or [run.input]
        for exchange in (*run.before, *run.exchanges):
            if exchange.kind in ("agent", "draw"):
                continue
            heard = _heard(exchange)
            texts += heard or ()
            if heard is None:
                told.blind = f"what {exchange.site} said cannot be read"
        if not run.exchanges and not run.before:
            told.blind = "nothing crossed the boundary"
        unique = list(dict.fromkeys(texts))  # agents send the conversation again with every request
        told.text = "\n".join(unique).lower()
        for fact in (fact for text in unique for fact in facts(text)):
            match fact.kind:
                case "number":
                    told.numbers.add(fact.value)
                case "date":
                    year, _, day = fact.value.partition("-")
                    told.dates.setdefault(day, set()).add(year)
                case "time":
                    told.times.add(fact.value)
                case _:
                    told.ids.add(fact.value)
                    told.numbers.update(digits.lstrip("0") or "0" for digits in re.findall(r"\d+", fact.value))
        told.values = frozenset(Decimal(number) for number in told.numbers if len(number) <= _DIGITS)
        told.endings = sorted(run[::-1] for run in set(re.findall(r"[x*•]?\d+", told.text)))
        return told

    def holds(self, fact: Fact) -> bool:
        match fact.kind:
            case "number":
                return self._number(fact)
            case "date":
                year, _, day = fact.value.partition("-")
                years = self.dates.get(day, set())
                return bool(years) and (year == "*" or not years.isdisjoint(("*", year)))
            case "time":
                hour, _, minute = fact.value.partition(":")
                either = "m" not in fact.text.lower()  # without am or pm, both halves of the day may be meant
                later = f"{(int(hour) + 12) % 24:02d}:{minute}"
                return fact.value in self.times or (either and later in self.times)
            case _:
                return fact.value in self.ids or fact.value in self.text or fact.value.replace("-", "") in self.text

    def _number(self, fact: Fact) -> bool:
        if fact.value in self.numbers:
            return True
        if self._ends(fact.value.replace(".", "")):
            return True
        if not _short(fact):
            return False
        value = Decimal(fact.value)
        places = -int(value.as_tuple().exponent) if "." in fact.text else 0
        return value in self._to(places) or value / 100 in self.values  # 0.2 told, 20% said

    def _ends(self, digits: str) -> bool:
        """Whether these are the last digits of something longer: a card, an account, an id."""
        if len(digits) < 3:
            return False
        wanted = digits[::-1]
        at = bisect_right(self.endings, wanted)
        return at < len(self.endings) and self.endings[at].startswith(wanted)

    def _to(self, places: int) -> set[Decimal]:
        """What was told, rounded to so many places; each number of places is worked out once."""
        if places not in self._rounded:
            rounded = (told for told in self.values if places or told != told.to_integral_value())
            self._rounded[places] = {round(told, places) for told in rounded}
        return self._rounded[places]


def _heard(exchange: Exchange) -> list[str] | None:
    """What one exchange told the agent; None if it cannot be read."""
    if exchange.kind == "llm":
        wire = wire_of(exchange.wire)
        body = exchange.body if exchange.world_body is None else exchange.world_body
        asked = None if wire is None else wire.asked(decode_body(body, exchange.headers))
        if asked is None or not asked.turns:
            return None
        return [
            text
            for turn in asked.turns
            for text in ([turn.text] if turn.role not in _MODEL else []) + [r.text for r in turn.tool_results]
        ]
    return [decode_body(exchange.reply.body, exchange.reply.headers).decode("utf-8", "replace")]


_MODEL = ("assistant", "model")


def _unread(run: RunView) -> str:
    """What the model was told besides text, where that may be it; empty where there is nothing."""
    said: list[bytes] = []
    for exchange in (*run.before, *run.exchanges):
        if exchange.kind != "llm":
            continue
        asked = decode_body(exchange.body if exchange.world_body is None else exchange.world_body, exchange.headers)
        replied = decode_body(exchange.reply.body, exchange.reply.headers)
        if word := shown(asked):
            return f"{exchange.site} shows the model what is no text ({word})"
        if word := fetched(asked) or fetched(replied):
            return f"{exchange.site} holds what the provider may have looked up itself ({word})"
        if (name := remembered(asked)) and not any(name.encode() in each for each in said):
            return f"{exchange.site} goes on from what only the provider knows ({plain(name, 60)})"
        said.append(replied)
    return ""


def _groups(found: Iterable[Fact]) -> Iterator[list[Fact]]:
    """The readings of each fact together."""
    group: list[Fact] = []
    for fact in found:
        if group and fact.at != group[0].at:
            yield group
            group = []
        group.append(fact)
    if group:
        yield group


def _counts(fact: Fact) -> bool:
    return fact.kind == "number" and fact.value in _COUNTED and "%" not in fact.text


def _short(fact: Fact) -> bool:
    return len(fact.value) <= _DIGITS


def _sums(stated: Sequence[list[Fact]], unknown: Sequence[list[Fact]]) -> set[Decimal]:
    """What follows from those numbers of the answer that were told."""
    foreign = {id(group) for group in unknown}
    numbers = (g[0].value for g in stated if id(g) not in foreign and g[0].kind == "number" and _short(g[0]))
    known = [Decimal(number) for number in islice(numbers, _OPERANDS)]  # `stated` holds no counts
    found = {value for a, b in combinations(known, 2) for value in (a + b, abs(a - b), a * b)}
    found |= {a * n for a in known for n in range(2, _COUNTS + 1)}
    return found | set(accumulate(known)) | {sum(set(known), Decimal(0))}


def _around(text: str, fact: Fact) -> str:
    return quote_around(text, fact.at, fact.at + len(fact.text), 60)
