"""A schedule at work in one run: for each call, which faults hit it, and their stages around it.

A fault hits a call when its filter matches (family, name, URL, site) and all its triggers agree. Occurrences are
counted per fault among the calls its filter matches. Probability is drawn from (fault, site), never from shared state,
so the same seed gives the same faults under any concurrency. `times` counts firings: a hit takes its turn when the
call arrives, so concurrent calls cannot take one turn twice, and gives it back if the fault then took no effect.

A fault is *masked* when another one at the same call kept it from taking effect: one further out never went inward, or
one further in answered in the world's place and left nothing to change.

A tool fault acts on the tool's call where a seam sees it, else on the tool's result in the next model request
(`rewriting.py`); `where` fixes one of the two. A result is left alone by default if its tool's calls have crossed in
this run, or if any call that the fault is for has crossed since the last model request: a tool may be called by another
name there, or by none, and must not be broken twice.
"""

from __future__ import annotations

import fnmatch
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.core.call import Call, Tap
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.site import Kind, Site
from flakestorm.errors import StageError
from flakestorm.faults.base import Scene, inward, result_faults
from flakestorm.faults.hits import Hit
from flakestorm.faults.planned import Planned
from flakestorm.faults.promises import Promises
from flakestorm.faults.rewriting import Carried, Results
from flakestorm.wire.classify import url_matches
from flakestorm.wire.conversation import CallNames, tool_results
from flakestorm.wire.mcp import works
from flakestorm.wire.results import Result

__all__ = ["Stage", "matcher", "result_matcher"]


@dataclass(slots=True, eq=False)
class _Crossing:
    """What became of one call that faults were laid around."""

    hits: list[Hit]
    carried: Carried | None = None
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
        on_results = [(at, result_matcher(fault)) for at, fault in enumerate(planned)]
        self._on_results = [(at, matches) for at, matches in on_results if matches is not None]
        self._names = CallNames()
        self._results = Results(choices, find=self._find, hits=self._result_hits, spare=self._give_back)
        self._crossed: set[str] = set()  # names of the tools whose calls a seam has seen
        self._lately: set[int] = set()  # faults that were for a call since the last model request

    def __call__(self, call: Call) -> Flow:
        if call.kind in ("agent", "draw"):
            return (yield from inward(call))
        hits = self._hits(call)
        carried = self._carried(call) if call.kind == "llm" and self._on_results else None
        if hits or carried:
            reply = yield from self._through(call, _Crossing(hits, carried))
        else:
            reply = self._promises.noted(call, (yield from inward(call)))
        return self._names.listen(call, reply) if self._on_results else reply

    def _through(self, call: Call, crossing: _Crossing) -> Flow:
        self._ledger.hit.add(cast(Site, call.site))
        hits, carried = crossing.hits, crossing.carried
        stages: list[Interceptor] = [self._entering(hit) for hit in hits]
        if carried is not None:
            stages.append(carried.stage)
        try:
            reply = yield from chain(*stages, _asking(crossing))(call)
        except BaseException:
            self.settle(crossing, hits)
            raise
        self.settle(crossing, [hit for hit in hits if not hit.entered])
        undecided = [hit for hit in hits if not hit.settled and not hit.fired]
        return reply.pipe(_Settling(self, crossing, undecided)) if undecided else reply

    def _hits(self, call: Call) -> list[Hit]:
        if call.kind in ("tool", "mcp"):
            self._crossed.add(call.name)
        matching = [at for at, (_, matches) in enumerate(self._planned) if matches(call)]
        if not matching:
            return []
        site = _site(call)
        with self._lock:
            if call.kind != "llm":
                self._lately.update(matching)
            return [self._hit(at, site) for at in matching if self._due(at, site)]

    def _carried(self, call: Call) -> Carried | None:
        """The results in a model request, as faults want them; None if they want nothing."""
        _site(call)
        carried = self._results.carried(call)
        with self._lock:
            self._lately.clear()
        return carried

    def _find(self, wire: str, body: bytes) -> Sequence[Result]:
        return tool_results(wire, body, name_of=self._names.name_of)

    def _result_hits(self, site: Site) -> list[Hit]:
        """The faults that hit a result which this run has not met before."""
        with self._lock:
            seen = {at for at, _ in self._on_results} if site.name in self._crossed else self._lately
            return [
                self._hit(at, site)
                for at, matches in self._on_results
                if matches(site) and (self._always(at) or at not in seen) and self._due(at, site)
            ]

    def _always(self, at: int) -> bool:
        """Whether this fault is for results also of tools whose calls are seen."""
        spec = self._planned[at][0].spec
        return isinstance(spec, ToolFault) and spec.where == "result"

    def _hit(self, at: int, site: Site) -> Hit:
        return Hit(at, self._planned[at][0], site, self._ledger)

    def _give_back(self, hit: Hit) -> None:
        with self._lock:
            self._turns[hit.at] -= 1

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

    def _entering(self, hit: Hit) -> Interceptor:
        draws = self._choices.within("fault", hit.planned.index, hit.site)
        scene = Scene(hit.site, draws, hit.fire, self._ledger.canaries.append, self._promises.of(hit.site.name))
        fault = hit.planned.build(scene)

        def enter(call: Call) -> Flow:
            hit.entered = True
            return fault(call)

        return enter

    def settle(self, crossing: _Crossing, hits: list[Hit]) -> None:
        """These faults will not fire any more: give their turns back, and say which of them were masked."""
        by = ", ".join(hit.planned.mode for hit in crossing.hits if hit.fired)
        for hit in hits:
            if hit.fired or hit.settled:
                continue
            hit.settled = True
            self._give_back(hit)
            if by and not (hit.entered and crossing.asked):
                hit.mask(by)
        if by and crossing.carried is not None and not crossing.asked:
            crossing.carried.masked(by)


class _Settling(Tap):
    """Faults of the body have fired or not once it has passed."""

    __slots__ = ("_crossing", "_hits", "_stage")

    def __init__(self, stage: Stage, crossing: _Crossing, hits: list[Hit]) -> None:
        self._stage, self._crossing, self._hits = stage, crossing, hits

    def end(self, error: BaseException | None) -> None:
        self._stage.settle(self._crossing, self._hits)


def _asking(crossing: _Crossing) -> Interceptor:
    def ask(call: Call) -> Flow:
        crossing.asked = True
        return (yield from inward(call))

    return ask


def _site(call: Call) -> Site:
    if call.site is None:
        raise StageError(f"the call to {call.url} has no site; the fault stage stands inside the classify stage")
    return call.site


def matcher(planned: Planned) -> Callable[[Call], bool]:
    """A fault's filter: whether a call is one it is for, triggers aside.

    A tool fault is for tools and MCP calls whose name its glob matches, unless it is for results only. Unnamed HTTP
    calls are matched by `*`, by `match_url` whatever `tool` says, and by `site`; model calls never are. Of MCP a glob
    means what a server does for the agent (tools, resources, prompts); the protocol's own housekeeping, without which
    there would be no tool to break, is matched by its exact name (`tools/list`) or its site.

    Raises:
        Misuse: the fault's site is malformed.
    """
    spec, site = planned.spec, planned.site
    if isinstance(spec, ToolFault) and spec.where == "result":
        return lambda _: False
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


def result_matcher(planned: Planned) -> Callable[[Site], bool] | None:
    """A fault's filter for tool results, by their site; None if it never acts on results.

    It does not if it says so, if it is for a URL (a result has none), or if its mode has no such form.
    """
    spec, pinned = planned.spec, planned.site
    if not isinstance(spec, ToolFault) or spec.where == "call" or spec.match_url is not None:
        return None
    if spec.mode not in result_faults and spec.mode not in result_faults.names():
        return None
    name = re.compile(fnmatch.translate(spec.tool)).match
    return lambda site: name(site.name) is not None and pinned in (None, site)
