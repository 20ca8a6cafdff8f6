"""Text that context attacks have put into the conversations of one run.

An attack is asked at each model call that it is for. Where it gives an entry, that is bound to the newest message of
the conversation (or to its system prompt) and stays there in every later request of that conversation, as agents send
their history again with each: a conversation must not change its past. While a conversation carries an attack, the
same attack does not enter it once more. Where the provider keeps the conversation, it keeps what was added, too.

A hit is written into the ledger when the first request that carries its entry goes out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Flow
from flakestorm.faults.base import Entry, Heard, inward
from flakestorm.faults.hits import Hit
from flakestorm.wire.context import Addition, Conversation, Key, added, conversation
from flakestorm.wire.results import Result

__all__ = ["Entered", "Entries"]


@dataclass(slots=True, eq=False)
class _Entry:
    """An entry, and where it is.

    Args:
        hit: the attack at the call with which it came in.
        entry: what it is.
        wire: of that call.
        addition: how it is written into a request.
        marks: what the requests of its conversation have in common, as far as they have been seen.
    """

    hit: Hit
    entry: Entry
    wire: str
    addition: Addition
    marks: set[Key] = field(default_factory=set)

    def within(self, wire: str, talk: Conversation) -> bool:
        """Whether this is its conversation."""
        return wire == self.wire and (talk.resumed or not self.marks.isdisjoint(talk.marks))

    def stands_in(self, wire: str, talk: Conversation) -> bool:
        """Whether this request must carry it."""
        if self.addition.at is None:
            return self.within(wire, talk)
        return any(message.key == self.addition.at for message in talk.messages)


class Entries:
    """The entries of one run.

    Args:
        choices: scoped to the run.
        results: the tool results in a request of this wire with this body.
        hits: the attacks whose triggers agree at a model call, outermost first; asked once for each call.
        spare: is given the hits that found nothing to act on, or are in the conversation already.
        barred: is told of a model call that cannot be added to, and why.
    """

    def __init__(
        self,
        choices: Choices,
        *,
        results: Callable[[str, bytes], Sequence[Result]],
        hits: Callable[[Call], Sequence[Hit]],
        spare: Callable[[Hit], None],
        barred: Callable[[Call, str], None],
    ) -> None:
        self._choices, self._results, self._hits, self._spare = choices, results, hits, spare
        self._barred = barred
        self._entries: list[_Entry] = []
        self._lock = threading.Lock()  # agents call from several threads

    def carried(self, call: Call) -> Entered | None:
        """What a model call carries; None if that is nothing, or its protocol cannot be added to."""
        talk = conversation(call.wire, call.body)
        if talk is None:
            if call.wire != "embeddings":  # in which nobody is told anything
                self._barred(call, f"a request of this kind ({call.wire or 'unknown'}) cannot be added to")
            return None
        with self._lock:
            for hit in self._hits(call):
                if not self._enter(hit, call, talk):
                    self._spare(hit)
            here = [entry for entry in self._entries if entry.stands_in(call.wire, talk)]
            for entry in here:
                entry.marks |= talk.marks
        return Entered(here, self._lock) if here else None

    def _enter(self, hit: Hit, call: Call, talk: Conversation) -> bool:
        known = (entry for entry in self._entries if entry.hit.at == hit.at)
        if any(entry.within(call.wire, talk) or entry.stands_in(call.wire, talk) for entry in known):
            return False
        heard = Heard(talk, self._results(call.wire, call.body))
        entry = hit.planned.entry(heard, hit.draws(self._choices))
        if entry is None or (talk.newest is None and not entry.in_system):
            return False
        at = None if entry.in_system or talk.newest is None else talk.newest.key
        addition = Addition(entry.text, at, entry.strategy)
        if added(call.wire, call.body, [addition]) == call.body:  # a request without a message has no place for it
            return False
        self._entries.append(_Entry(hit, entry, call.wire, addition, set(talk.marks)))
        return True


class Entered:
    """A model call with what attacks have put into its conversation; `stage` stands inside all faults of the model."""

    def __init__(self, entries: Sequence[_Entry], lock: threading.Lock) -> None:
        self._entries, self._lock = entries, lock

    def stage(self, call: Call) -> Flow:
        """Sends the call inward with the entries in it; those that go out for the first time are written down."""
        with self._lock:
            for entry in self._entries:
                via = None if call.site == entry.hit.site else call.site
                entry.hit.fire(entry.entry.detail, via=via, canary=entry.entry.canary)
        body = added(call.wire, call.body, [entry.addition for entry in self._entries])
        return (yield from inward(replace(call, body=body)))

    def masked(self, by: str) -> None:
        """The call never went out, because faults of these modes answered it. A later one may yet carry the entries."""
        with self._lock:
            for entry in self._entries:
                if not entry.hit.fired:
                    entry.hit.mask(by)
