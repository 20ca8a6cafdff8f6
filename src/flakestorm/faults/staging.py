"""A schedule at work in one run: for each call, which faults hit it, and their stages around it.

A fault hits a call when its filter matches (family, name, URL, site) and all its triggers agree. Occurrences are
counted per fault among the calls its filter matches. Probability is drawn from (fault, site), never from shared state,
so the same seed gives the same faults under any concurrency. `times` counts firings: a hit takes its turn when the
call arrives, so concurrent calls cannot take one turn twice, and gives it back if the fault then took no effect.

A fault is *masked* when another one at the same call kept it from taking effect: one further out never went inward, or
one further in answered in the world's place and left nothing to change.
"""

from __future__ import annotations

import fnmatch
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flakestorm.config.model import ContextAttack, LlmFault
from flakestorm.core.call import Call, Tap
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.site import Kind, Site
from flakestorm.errors import StageError
from flakestorm.faults.base import Scene, inward
from flakestorm.faults.planned import Planned
from flakestorm.faults.promises import Promises
from flakestorm.wire.classify import url_matches
from flakestorm.wire.mcp import works

__all__ = ["Stage", "matcher"]


@dataclass(slots=True, eq=False)
class _Hit:
    """One fault at one call."""

    at: int  # the fault's place in the stage
    planned: Planned
    site: Site
    ledger: Ledger
    entered: bool = False
    fired: bool = False
    settled: bool = False

    def fire(self, detail: str) -> None:
        if not self.fired:
            self.fired = True
            self.ledger.fired.append(self._firing(detail))

    def mask(self, by: str) -> None:
        self.ledger.masked.append(self._firing(f"masked by {by}"))

    def _firing(self, detail: str) -> Firing:
        return Firing(self.site, self.planned.mode, self.planned.family, detail, self.planned.index)


@dataclass(slots=True, eq=False)
class _Crossing:
    """What became of one call that faults were laid around."""

    hits: list[_Hit]
    asked: bool = False  # whether the call got past the innermost fault


class Stage:
    """The interceptor of one run's faults; `Schedule.stage` makes it."""

    def __init__(self, planned: Sequence[Planned], choices: Choices, ledger: Ledger) -> None:
        self._planned = [(fault, matcher(fault)) for fault in planned]
        self._choices, self._ledger = choices, ledger
        self._lock = threading.Lock()  # agents call from several threads
        self._seen = [0] * len(planned)
        self._turns = [0] * len(planned)
        self._promises = Promises()

    def __call__(self, call: Call) -> Flow:
        hits = self._hits(call) if call.kind not in ("agent", "draw") else []
        if not hits:
            return self._promises.noted(call, (yield from inward(call)))
        self._ledger.hit.add(hits[0].site)
        crossing = _Crossing(hits)
        stages = [self._entering(hit) for hit in hits]
        try:
            reply = yield from chain(*stages, _asking(crossing))(call)
        except BaseException:
            self.settle(crossing, hits)
            raise
        self.settle(crossing, [hit for hit in hits if not hit.entered])
        undecided = [hit for hit in hits if not hit.settled and not hit.fired]
        return reply.pipe(_Settling(self, crossing, undecided)) if undecided else reply

    def _hits(self, call: Call) -> list[_Hit]:
        matching = [at for at, (_, matches) in enumerate(self._planned) if matches(call)]
        if not matching:
            return []
        site = call.site
        if site is None:
            raise StageError(f"the call to {call.url} has no site; the fault stage stands inside the classify stage")
        with self._lock:
            return [_Hit(at, self._planned[at][0], site, self._ledger) for at in matching if self._due(at, site)]

    def _due(self, at: int, site: Site) -> bool:
        """Count this call for the fault and ask its triggers; takes a turn if all agree."""
        fault = self._planned[at][0]
        spec = fault.spec
        self._ledger.matched.add(fault.index)
        self._seen[at] += 1
        if spec.calls is not None and self._seen[at] not in spec.calls:
            return False
        if spec.after_calls is not None and self._seen[at] <= spec.after_calls:
            return False
        if spec.times is not None and self._turns[at] >= spec.times:
            return False
        chance = spec.probability
        if chance is None and isinstance(spec, ContextAttack):
            chance = spec.trigger_probability
        if chance is not None and self._choices.uniform("fault", fault.index, site, "fires") >= chance:
            return False
        self._turns[at] += 1
        return True

    def _entering(self, hit: _Hit) -> Interceptor:
        draws = self._choices.within("fault", hit.planned.index, hit.site)
        scene = Scene(
            hit.site, draws, hit.fire, self._ledger.canaries.append, self._promises.of(hit.site.name)
        )
        fault = hit.planned.build(scene)

        def enter(call: Call) -> Flow:
            hit.entered = True
            return fault(call)

        return enter

    def settle(self, crossing: _Crossing, hits: list[_Hit]) -> None:
        """These faults will not fire any more: give their turns back, and say which of them were masked."""
        by = ", ".join(hit.planned.mode for hit in crossing.hits if hit.fired)
        for hit in hits:
            if hit.fired or hit.settled:
                continue
            hit.settled = True
            with self._lock:
                self._turns[hit.at] -= 1
            if by and not (hit.entered and crossing.asked):
                hit.mask(by)


class _Settling(Tap):
    """Faults of the body have fired or not once it has passed."""

    __slots__ = ("_crossing", "_hits", "_stage")

    def __init__(self, stage: Stage, crossing: _Crossing, hits: list[_Hit]) -> None:
        self._stage, self._crossing, self._hits = stage, crossing, hits

    def end(self, error: BaseException | None) -> None:
        self._stage.settle(self._crossing, self._hits)


def _asking(crossing: _Crossing) -> Interceptor:
    def ask(call: Call) -> Flow:
        crossing.asked = True
        return (yield from inward(call))

    return ask


def matcher(planned: Planned) -> Callable[[Call], bool]:
    """A fault's filter: whether a call is one it is for, triggers aside.

    A tool fault is for tools and MCP calls whose name its glob matches. Unnamed HTTP calls are matched by `*`, by
    `match_url` whatever `tool` says, and by `site`; model calls never are. Of MCP a glob means what a server does for
    the agent (tools, resources, prompts); the protocol's own housekeeping, without which there would be no tool to
    break, is matched by its exact name (`tools/list`) or its site.

    Raises:
        Misuse: the fault's site is malformed.
    """
    spec, site = planned.spec, planned.site
    glob = spec.model if isinstance(spec, LlmFault) else spec.tool
    kinds: tuple[Kind, ...] = ("llm",) if isinstance(spec, LlmFault) else ("tool", "mcp", "http")
    unnamed = glob == "*" or spec.match_url is not None or site is not None
    name = re.compile(fnmatch.translate(glob)).match
    url = None if spec.match_url is None else url_matches(spec.match_url)

    def matches(call: Call) -> bool:
        if call.kind not in kinds or (site is not None and call.site != site):
            return False
        if not (unnamed if call.kind == "http" else name(call.name)):
            return False
        if call.kind == "mcp" and glob != call.name and site is None and not works(call):
            return False
        return url is None or url(call.url)

    return matches
