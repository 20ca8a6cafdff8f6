"""A finished run with its verdicts: what was planned, what happened, and what each invariant says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import judge
from flakestorm.core.answer import AgentError
from flakestorm.core.call import Call
from flakestorm.core.record import Record
from flakestorm.core.site import Site
from flakestorm.core.verdict import Verdict, inconclusive
from flakestorm.engine.events import CellResult, RunResult
from flakestorm.engine.plan import Trial
from flakestorm.engine.ports import World
from flakestorm.tape.cleaning import cleaned, redacted
from flakestorm.tape.redact import Redactor

__all__ = ["CHECK_LIMIT_S", "Judged", "baselines_of", "judged", "kept", "refused"]

CHECK_LIMIT_S = 5.0
"""How long one invariant may take to judge one run."""

_AT_ONCE = frozenset({"completes", "contains", "contains_any", "latency", "output_not_empty"})
"""Types whose check is one look at an output of any length: nothing that a limit would have to be set for."""

_TURNED_AWAY = ("HTTP 4", "HTTP 501", "HTTP 505")  # the latter two: no such method, no such version


class Judged(Record, frozen=True):
    """A finished run with its verdicts.

    Args:
        trial: what was planned.
        run: what happened.
        view: the run as invariants saw it; its exchanges are dropped, so that thousands of runs fit into memory.
        verdicts: one for each invariant that applied.
        calls, results: of a run without chaos: the calls it made, without what they asked for, and the tools of the
            results that its models were told of. They say what faults would have found there.
        sites: where faults could act, in order of arrival; only where `Hooks.sites` asks for them.
    """

    trial: Trial
    run: RunResult
    view: RunView
    verdicts: tuple[tuple[Invariant, Verdict], ...]
    calls: tuple[Call, ...] = ()
    results: tuple[str, ...] = ()
    sites: tuple[Site, ...] = ()

    @property
    def cells(self) -> tuple[CellResult, ...]:
        """The verdicts as cells of a report, before what only the whole scenario can tell."""
        at, run = self.trial, self.run.id
        return tuple(
            CellResult(at.scenario.name, str(i.id), i.severity, at.prompt, at.number, v.outcome, v.reason, run)
            for i, v in self.verdicts
        )


def judged(
    trial: Trial, run: RunResult, view: RunView, world: World, *, known: Mapping[str, Verdict] | None = None
) -> Judged:
    """Judge a finished run; also used on runs read back from an earlier, interrupted report.

    Args:
        trial, run, view: the run.
        world: limits how long judging may take.
        known: verdicts that are not worked out again, by the invariant's id.
    """
    before = known or {}
    found = ((i, before.get(str(i.id)) or _verdict(i, view, world)) for i in trial.invariants)
    verdicts = tuple((invariant, verdict) for invariant, verdict in found if verdict is not None)
    bare = replace(view, exchanges=())
    if view.chaos or not view.held or not view.exchanges:
        return Judged(trial, run, bare, verdicts)
    from flakestorm.tape.tools import calls_of, tool_results_of

    return Judged(trial, run, bare, verdicts, calls_of(view.exchanges), tool_results_of(view.exchanges))


def _verdict(invariant: Invariant, view: RunView, world: World) -> Verdict | None:
    """A pattern from a config may backtrack for ever over what a hostile agent said; nothing else waits for that."""
    if invariant.type in _AT_ONCE:
        return judge(invariant, view)
    try:
        with world.limited(CHECK_LIMIT_S):
            return judge(invariant, view)
    except TimeoutError:
        return inconclusive(f"the check took longer than {CHECK_LIMIT_S:g} s and was ended; simplify its pattern")


def refused(trial: Trial, error: AgentError | None) -> bool:
    """Whether this was an attack on HTTP itself, and the agent turned it away, as it should."""
    mutation = trial.mutation
    attacked = mutation is not None and mutation.change is not None and mutation.kind == "attack"
    return attacked and error is not None and error.kind == "http" and error.message.startswith(_TURNED_AWAY)


def kept(judged: Judged, redactor: Redactor) -> Judged:
    """What may go into reports: the agent was judged by what it really said, but secrets are not passed on."""
    run, text = judged.run, redactor.text
    clean = replace(
        run,
        input=text(run.input),
        turns=tuple(redacted(turn, redactor) for turn in run.turns),
        mutation=run.mutation and replace(run.mutation, original=text(run.mutation.original)),
        output=cleaned(run.output, redactor),
        error=redactor.maybe(run.error),
        fired=tuple(replace(each, detail=text(each.detail)) for each in run.fired),
        masked=tuple(replace(each, detail=text(each.detail)) for each in run.masked),
        reproduce=text(run.reproduce),
        seen=tuple(map(text, run.seen)),
        remarks=tuple(map(text, run.remarks)),
    )
    verdicts = tuple((each, replace(verdict, reason=text(verdict.reason))) for each, verdict in judged.verdicts)
    return replace(judged, run=clean, verdicts=verdicts)


def baselines_of(calm: Iterable[Judged]) -> dict[int, str]:
    """What the agent said to each prompt without chaos: the first output there was.

    Args:
        calm: runs without chaos, in plan order.
    """
    found: dict[int, str] = {}
    for judged in calm:
        if judged.view.starved:  # what it says is what it says of a world that turned it away
            continue
        if judged.run.error is None and judged.run.mutation is None:
            found.setdefault(judged.trial.prompt, judged.run.output)
        if judged.run.error is None:
            found.setdefault(judged.trial.prompt, judged.view.output)
    return found
