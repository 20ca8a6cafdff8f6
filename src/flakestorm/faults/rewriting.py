"""Tool results of one run, broken on their way to the model.

Each distinct result is met once: it gets its site (`tool/search#2` is the second result of `search` in the run), and
which faults hit it, and what it tells from then on, is decided for good. Every later request that holds it says the
same, as a conversation must. A hit is written into the ledger when a request that it changed first goes out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flakestorm.core.call import Call, Sleep
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Flow
from flakestorm.core.site import Site, Sites
from flakestorm.faults.base import Change, Scene, inward
from flakestorm.faults.hits import Hit
from flakestorm.wire.conversation import rewrite
from flakestorm.wire.results import Key, Result, Told

__all__ = ["Carried", "Results"]


@dataclass(slots=True)
class _Met:
    """A result that this run has met.

    Args:
        told: what it tells from now on; None leaves it as it is.
        waiting: what no request has carried out yet.
    """

    told: Told | None = None
    waiting: list[tuple[Hit, Change]] = field(default_factory=list)
    covered: list[Hit] = field(default_factory=list)  # hits of which nothing will be left
    by: str = ""  # what covers them


class Results:
    """The results that one run has met.

    Args:
        choices: scoped to the run.
        find: the results in a request of this wire with this body.
        hits: the faults that hit a result of this site, outermost first; asked once for each result.
        spare: is given the hits that found nothing to change.
    """

    def __init__(
        self,
        choices: Choices,
        *,
        find: Callable[[str, bytes], Sequence[Result]],
        hits: Callable[[Site], Sequence[Hit]],
        spare: Callable[[Hit], None],
    ) -> None:
        self._choices, self._find, self._hits, self._spare = choices, find, hits, spare
        self._met: dict[Key, _Met] = {}
        self._sites = Sites()
        self._lock = threading.Lock()

    def carried(self, call: Call) -> Carried | None:
        """What becomes of the results that a model call holds; None if nothing does."""
        found = self._find(call.wire, call.body)
        if not found:
            return None
        with self._lock:
            met = {result.key: self._met.get(result.key) or self._meet(result) for result in found}
        if all(known.told is None and not known.waiting for known in met.values()):
            return None
        return Carried(call, found, met, self._find, self._lock)

    def _meet(self, result: Result) -> _Met:
        site = self._sites.next("tool", result.name)
        known = self._met[result.key] = _Met()
        told = result.told
        for hit in reversed(self._hits(site)):  # innermost first, so that each finds what those further in have made
            change = hit.planned.change(told, Scene(site, hit.draws(self._choices), hit.fire, idle=hit.idle))
            if change is None or (change.told in (None, told) and not change.delay_ms):
                self._spare(hit)
                continue
            if change.replaces:
                known.covered += [inner for inner, _ in known.waiting]
                known.waiting, known.by = [], hit.planned.mode
            known.waiting.insert(0, (hit, change))
            told = told if change.told is None else change.told
        known.told = None if told == result.told else told
        return known


class Carried:
    """A model call with results that faults have hit; `stage` stands further in than all faults of the call itself."""

    def __init__(
        self,
        call: Call,
        found: Sequence[Result],
        met: Mapping[Key, _Met],
        find: Callable[[str, bytes], Sequence[Result]],
        lock: threading.Lock,
    ) -> None:
        self._made, self._found, self._met, self._find, self._lock = call, found, met, find, lock

    def stage(self, call: Call) -> Flow:
        """Sends the call inward with its results rewritten; what takes effect by that is written down."""
        delay_ms = 0
        with self._lock:
            for known in self._met.values():
                for hit, change in known.waiting:
                    hit.fire(change.detail, via=call.site, canary=change.canary)
                    delay_ms += change.delay_ms
                for hit in known.covered:
                    hit.mask(known.by)
                known.waiting, known.covered = [], []
        if delay_ms:
            yield Sleep(delay_ms / 1000)
        return (yield from inward(self._told(call)))

    def _told(self, call: Call) -> Call:
        changed = call.body is not self._made.body  # by a fault further out, so the results stand elsewhere
        found = self._find(call.wire, call.body) if changed else self._found
        changes = [
            (result, known.told)
            for result in found
            if (known := self._met.get(result.key)) is not None and known.told is not None
        ]
        return replace(call, body=rewrite(call.wire, call.body, changes)) if changes else call

    def masked(self, by: str) -> None:
        """The call never went out, because faults of these modes answered it. A later one may yet carry the results."""
        with self._lock:
            for known in self._met.values():
                for hit in (*(hit for hit, _ in known.waiting), *known.covered):
                    hit.mask(by)
