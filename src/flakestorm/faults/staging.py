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
name there, or by none, and must not be broken twice. An indirect injection goes by the same rules.

The other context attacks act on what a model call tells the model (`entering.py`), and memory poisoning, where it says
so, on the agent's input (`Stage.given`): that is the one place where the agent is asked something else.
"""

from __future__ import annotations

import fnmatch
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.core.call import Call, Tap
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.registry import Registry
from flakestorm.core.site import Kind, Site
from flakestorm.errors import FlakestormError, StageError
from flakestorm.faults.base import Scene, inward, result_attacks, result_faults
from flakestorm.faults.entering import Entered, Entries
from flakestorm.faults.hits import Hit
from flakestorm.faults.mcp import LISTING
from flakestorm.faults.memory import poisoned
from flakestorm.faults.planned import Planned
from flakestorm.faults.promises import Promises
from flakestorm.faults.rewriting import Carried, Results
from flakestorm.faults.sessions import Sessions
from flakestorm.wire.classify import url_matches
from flakestorm.wire.conversation import CallNames, Noted, holds_results, tool_results
from flakestorm.wire.mcp.protocol import Mcp, answered_elsewhere, works
from flakestorm.wire.results import Result

__all__ = ["INPUT", "Stage", "matcher", "result_matcher"]

INPUT = Site("agent", "input", 1)
"""The site of what the agent is asked."""


_OF_THE_WAY = frozenset(("connection_reset", "duplicate", "slow", "timeout"))
_ELSEWHERE = (
    "by MCP's HTTP+SSE transport the answer comes on another connection, which is not held within the agent's process; "
    "use streamable HTTP or stdio, or launch the agent (type command or http, with agent.mcp)"
)

_TOOLS: tuple[Kind, ...] = ("tool", "mcp", "http")
_Filters = list[tuple[int, Callable[[Call], bool]]]
"""Faults of one kind of call, by their place in the schedule, each with its filter."""


@dataclass(slots=True, eq=False)
class _Crossing:
    """What became of one call that faults were laid around."""

    hits: list[Hit]
    carried: tuple[Carried | Entered, ...] = ()
    asked: bool = False  # whether the call got past the innermost fault


class Stage:
    """The interceptor of one run's faults; `Schedule.stage` makes it."""

    def __init__(
        self, planned: Sequence[Planned], choices: Choices, ledger: Ledger, noted: Callable[[], Sequence[Noted]]
    ) -> None:
        for fault in planned:
            fault.load()
        self._planned = [(fault, matcher(fault)) for fault in planned]
        self._filters: dict[Kind, _Filters] = {
            kind: [
                (at, matches)
                for at, (fault, matches) in enumerate(self._planned)
                if kind in _kinds(fault) and not fault.on_conversations  # which acts on what the model is told
            ]
            for kind in ("llm", *_TOOLS)
        }
        self._choices, self._ledger = choices, ledger
        self._lock = threading.Lock()  # agents call from several threads
        self._seen = [0] * len(planned)
        self._turns = [0] * len(planned)
        self._promises = Promises()
        self._sessions = Sessions()
        on_results = [(at, result_matcher(fault)) for at, fault in enumerate(planned)]
        self._on_results = [(at, matches) for at, matches in on_results if matches is not None]
        self._names = CallNames(noted)
        self._results = Results(choices, find=self._find, hits=self._result_hits, spare=self._give_back)
        self._on_conversations = [at for at, fault in enumerate(planned) if fault.on_conversations]
        entered, spare = self._conversation_hits, self._give_back
        self._entries = Entries(choices, results=self._find, hits=entered, spare=spare, barred=self._barred)
        self._listening = bool(self._on_results or self._on_conversations)
        self._crossed: set[str] = set()  # names of the tools whose calls a seam has seen
        self._lately: set[int] = set()  # faults that were for a call since the last model request

    def __call__(self, call: Call) -> Flow | Call:
        kind = call.kind
        filters = self._filters.get(kind)
        if filters is None:
            return call
        if kind in ("tool", "mcp"):
            self._crossed.add(call.name)
        hits = self._hits(call, filters) if filters else []
        carried: tuple[Carried | Entered, ...] = ()
        if kind == "llm" and self._listening:
            _site(call)
            holds = bool(self._on_results) and holds_results(call.wire, call.body)
            if holds or self._lately or self._on_conversations:
                carried = self._carried(call, holds)
        if hits or carried:
            inner: Flow | Call = self._through(call, _Crossing(hits, carried))
        elif kind == "mcp":
            inner = self._sessions.stage(call)
        else:
            return call
        return self._promised(call, inner) if call.wire == Mcp.name else inner

    def _promised(self, call: Call, inner: Flow | Call) -> Flow:
        reply = yield from inward(inner) if isinstance(inner, Call) else inner
        return self._promises.noted(call, reply)

    def given(self, asked: str) -> str:
        """What the agent is asked, when it was to be asked this. Called once, before it is."""
        for at, (fault, _) in enumerate(self._planned):
            if fault.on_input and self._due(at, INPUT):
                hit = self._hit(at, INPUT)
                asked, canary = poisoned(cast(ContextAttack, fault.spec), hit.draws(self._choices), asked)
                hit.fire(f"input poisoned, canary {canary.word}", canary=canary)
        return asked

    def _through(self, call: Call, crossing: _Crossing) -> Flow:
        self._ledger.hit.add(cast(Site, call.site))
        hits, carried = crossing.hits, crossing.carried
        stages: list[Interceptor] = [self._entering(hit) for hit in hits]
        stages += [inner.stage for inner in carried]
        try:
            reply = yield from chain(*stages, _asking(crossing), self._sessions.stage)(call)
        except BaseException:
            self.settle(crossing, hits)
            raise
        self.settle(crossing, [hit for hit in hits if not hit.entered])
        undecided = [hit for hit in hits if not hit.settled and not hit.fired]
        return reply.pipe(_Settling(self, crossing, undecided)) if undecided else reply

    def _hits(self, call: Call, filters: _Filters) -> list[Hit]:
        matching = [at for at, matches in filters if matches(call)]
        if not matching:
            return []
        site = _site(call)
        with self._lock:
            if call.kind != "llm":
                self._lately.update(matching)
            return [self._hit(at, site) for at in matching if self._due(at, site)]

    def _carried(self, call: Call, holds: bool) -> tuple[Carried | Entered, ...]:
        """What faults want a model request to say, outermost first; empty if they want nothing.

        Args:
            holds: whether it may hold results of tools, and a fault is for some.
        """
        entered = self._entries.carried(call) if self._on_conversations else None
        results = self._results.carried(call) if holds else None
        if self._lately:
            with self._lock:
                self._lately.clear()
        if entered is None and results is None:
            return ()
        return tuple(inner for inner in (entered, results) if inner is not None)

    def _conversation_hits(self, call: Call) -> list[Hit]:
        """The attacks that are for this model call, and whose triggers agree."""
        site = _site(call)
        with self._lock:
            wanted = [at for at in self._on_conversations if self._planned[at][1](call)]
            return [self._hit(at, site) for at in wanted if self._due(at, site)]

    def _barred(self, call: Call, why: str) -> None:
        """The attacks that would be for this model call have nothing to do there; that is no turn of theirs."""
        site = _site(call)
        with self._lock:
            for at in self._on_conversations:
                if self._planned[at][1](call):
                    self._hit(at, site).idle(why)

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
        return self._planned[at][0].on_results

    def _hit(self, at: int, site: Site) -> Hit:
        return Hit(at, self._planned[at][0], site, self._ledger)

    def _give_back(self, hit: Hit) -> None:
        with self._lock:
            self._turns[hit.at] -= 1

    def _due(self, at: int, site: Site) -> bool:
        """Count this call for the fault and ask its triggers; takes a turn if all agree."""
        fault = self._planned[at][0]
        spec = fault.spec
        self._ledger.matched[fault.index] += 1
        self._seen[at] += 1
        if spec.calls is not None and self._seen[at] not in spec.calls:
            return False
        if fault.step is not None and self._seen[at] != fault.step:
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
        scene = Scene(
            hit.site,
            hit.draws(self._choices),
            hit.fire,
            self._ledger.canaries.append,
            self._promises.of(hit.site.name),
            hit.idle,
            hit.also,
            self._sessions,
        )

        def enter(call: Call) -> Flow | Call:
            hit.entered = True
            if hit.planned.mode not in _OF_THE_WAY and answered_elsewhere(call):
                hit.idle(_ELSEWHERE)
                return call
            try:
                return hit.planned.build(scene)(call)
            except FlakestormError:
                raise
            except Exception as error:  # a plug-in's own: the agent is not to see it, and who judges the run is
                hit.idle(f"its own code failed, {type(error).__name__}: {error}")
                return call

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
        if by and not crossing.asked:
            for inner in crossing.carried:
                inner.masked(by)


class _Settling(Tap):
    """Faults of the body have fired or not once it has passed."""

    __slots__ = ("_crossing", "_hits", "_stage")

    def __init__(self, stage: Stage, crossing: _Crossing, hits: list[Hit]) -> None:
        self._stage, self._crossing, self._hits = stage, crossing, hits

    def end(self, error: BaseException | None) -> None:
        self._stage.settle(self._crossing, self._hits)


def _asking(crossing: _Crossing) -> Interceptor:
    def ask(call: Call) -> Call:
        crossing.asked = True
        return call

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
    there would be no tool to break, is matched by its exact name (`tools/list`) or its site. A TLS connection that came
    to nothing is broken already.

    Raises:
        Misuse: the fault's site is malformed.
    """
    spec, site = planned.spec, planned.site
    if planned.on_results or planned.on_input:
        return lambda _: False
    if isinstance(spec, ToolFault) and spec.mode in LISTING:
        return _listing_matcher(spec, site)
    glob = spec.model if isinstance(spec, LlmFault) else "*" if planned.on_conversations else spec.tool
    kinds = _kinds(planned)
    unnamed = glob == "*" or spec.match_url is not None or site is not None
    name = _named(glob)
    url = None if spec.match_url is None else url_matches(spec.match_url)

    def matches(call: Call) -> bool:
        if call.kind not in kinds or call.method == "TLS" or (site is not None and call.site != site):
            return False
        if not (unnamed if call.kind == "http" else name(call.name)):
            return False
        if call.kind == "mcp" and glob != call.name and site is None and not works(call):
            return False
        return url is None or url(call.url)

    return matches


@lru_cache(maxsize=256)  # every run of a scenario has the same
def _named(glob: str) -> Callable[[str], re.Match[str] | None]:
    """Whether a name is one of those that a glob stands for."""
    if "[" not in glob:
        return re.compile(fnmatch.translate(glob)).match
    return re.compile(rf"{re.escape(glob)}\Z|{fnmatch.translate(glob)}").match  # or it is a name as it stands: m[1m]


def _kinds(planned: Planned) -> tuple[Kind, ...]:
    """The kinds of calls that a fault is for."""
    of_models = isinstance(planned.spec, LlmFault) or planned.on_conversations
    return ("llm",) if of_models else _TOOLS


def _listing_matcher(spec: ToolFault, site: Site | None) -> Callable[[Call], bool]:
    """The filter of a fault of what MCP servers list: their lists, whichever tools it names.

    Calls of a tool that is named and is none of MCP are taken as well, so that the fault can say why it does nothing.
    """
    name = _named(spec.tool)
    url = None if spec.match_url is None else url_matches(spec.match_url)

    def matches(call: Call) -> bool:
        if site is not None and call.site != site:
            return False
        listing = call.kind == "mcp" and call.name == "tools/list"
        strange = call.kind == "tool" and spec.tool != "*" and name(call.name) is not None
        return (listing or strange) and (url is None or url(call.url))

    return matches


def result_matcher(planned: Planned) -> Callable[[Site], bool] | None:
    """A fault's filter for tool results, by their site; None if it never acts on results.

    It does not if it says so, if it is for a URL (a result has none), or if its mode has no such form.
    """
    spec, pinned = planned.spec, planned.site
    if isinstance(spec, LlmFault) or spec.where == "call" or spec.match_url is not None:
        return None
    forms: Registry[Any] = result_faults if isinstance(spec, ToolFault) else result_attacks
    if planned.mode not in forms and planned.mode not in forms.names():
        return None
    name = _named(spec.tool)
    return lambda site: name(site.name) is not None and pinned in (None, site)
