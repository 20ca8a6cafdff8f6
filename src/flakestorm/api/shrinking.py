"""`shrink`: a failing case meets the shrinker (`engine/shrink.py`), and the agent under test."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from flakestorm.api.carrying import Work, hub_of, in_words, report_in, runner_of, seed_of
from flakestorm.api.loops import in_a_loop
from flakestorm.api.options import Options
from flakestorm.api.probing import Prober, asides, at, cells_of, command_line, runs_of, same_search
from flakestorm.api.shrink_case import Case, case_of_run, case_of_session, case_of_tape
from flakestorm.config.model import Config, Invariant
from flakestorm.config.replays import ReplaySession
from flakestorm.contracts.matrix import prepare
from flakestorm.core.choices import Choices, Draw
from flakestorm.engine import events
from flakestorm.engine.asking import Asker
from flakestorm.engine.atoms import Asking, Failure, Outcome
from flakestorm.engine.events import (
    CellResult,
    Finding,
    Finished,
    InvariantInfo,
    Note,
    Progressed,
    Report,
    RunResult,
    ScenarioInfo,
)
from flakestorm.engine.pacing import paced_by
from flakestorm.engine.repertoire import Repertoire
from flakestorm.engine.shrink import reduce, shorten, smaller, weaken
from flakestorm.errors import Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.world import LocalWorld
from flakestorm.version import __version__

__all__ = ["Case", "Shrunk", "case_of_run", "case_of_session", "case_of_tape", "session_of", "shrink"]

BUDGET = 200


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What became of a case.

    Args:
        case: the smallest form; None where it does not fail any more.
        line: the command line that makes it run again.
        invariant, reason: the rule it breaks, and how.
        run: the run that shows it.
        runs: how many runs that took.
        interrupted: whether it may not be the smallest, because somebody pressed Ctrl-C or the runs were used up.
        why: what a reader must know.
        report: all of it, as other commands report; it can be resumed.
    """

    case: Case | None
    line: str = ""
    invariant: str = ""
    reason: str = ""
    run: RunResult | None = None
    runs: int = 0
    interrupted: bool = False
    why: str = ""
    report: Report | None = None


def shrink(
    work: Work,
    invariants: Sequence[Invariant],
    case: Case,
    repertoire: Repertoire,
    options: Options,
    *,
    budget: int = BUDGET,
    shorter: bool = False,
) -> Shrunk:
    """The smallest form of a case that fails in the same way.

    Args:
        work: the project.
        invariants: all there are.
        case: what fails.
        repertoire: weaker faults to try in place of its own.
        options: how.
        budget: at most so many runs.
        shorter: whether a golden prompt is made shorter too; other inputs always are.

    Raises:
        Misuse: the case names what is not available.
        AgentUnreachable: the agent could not be reached.
    """
    config = work.config
    prepare(invariants)
    text = config.golden_prompts[case.prompt] if case.prompt is not None else case.text or ""
    judges = tuple(i.probing([]) for i in invariants if text in i.probes) or tuple(
        i for i in invariants if not i.probes
    )
    earlier = None if options.resume is None else report_in(options.resume)
    seed = seed_of(config, options, case.seed if earlier is None else earlier.seed)
    if earlier is not None:
        same_search(earlier, "shrink", work, seed)
    world, asker = LocalWorld(options.tapes), Asker()
    began_s, started_at = world.monotonic(), world.now()
    best: list[tuple[Outcome, Failure]] = []
    draw = Choices(seed).stream("shrink")
    steps = _steps(asker, case, repertoire, draw, text, best, may_shorten=shorter or case.prompt is None)
    quiet = replace(options, listener=asides(options.listener))

    def reported(shrunk: Shrunk, prober: Prober | None) -> Report:
        took_ms = round((world.monotonic() - began_s) * 1000, 1)
        return _report(work, shrunk, prober, judges, seed=seed, started_at=started_at, took_ms=took_ms)

    nothing_yet = Shrunk(None, interrupted=True, why="interrupted")
    options.listener(events.Planned("shrink", budget, reported(nothing_yet, None)))

    async def work_it() -> Shrunk:
        stopped, why = False, ""
        with interruptible() as signals, world.reserved():
            async with runner_of(work, (), judges, quiet, seed, world, hub_of(config)) as runner:
                prober = Prober(work, runner, options.listener, world, earlier=runs_of(earlier, judges))
                try:
                    await runner.agent.start()
                    asks = next(steps)
                    while len(prober.done) + len(asks) <= budget:
                        outcomes = await prober.answer([(case.prompt or 0, text, judges, ask) for ask in asks])
                        options.listener(Progressed(_told(best)))
                        asks = steps.send(outcomes)
                    stopped, why = True, f"ended after {len(prober.done)} runs (--budget {budget})"
                except StopIteration:
                    pass
                except asyncio.CancelledError:
                    if not signals:
                        raise
                    stopped, why = True, "interrupted"
        options.listener(Note(why)) if why else None
        shrunk = _shrunk(work, case, best, prober, seed, stopped, why)
        report = reported(shrunk, prober)
        options.listener(Finished(report))
        return replace(shrunk, report=report)

    return in_a_loop(work_it)


def _told(best: Sequence[tuple[Outcome, Failure]]) -> str:
    return f"{len(best[-1][0].fired)} faults left" if best else "does it still fail?"


def _steps(
    asker: Asker,
    case: Case,
    repertoire: Repertoire,
    draw: Draw,
    text: str,
    best: list[tuple[Outcome, Failure]],
    *,
    may_shorten: bool,
) -> Asking[None]:
    """Does it still fail; then fewer faults, weaker ones, and less input."""
    for _ in range(3):
        outcomes = yield from asker.ask([case.atoms])
        failures = [f for f in outcomes[0].failures if case.invariant in ("", f.invariant) and f.invariant]
        if not failures:
            return
        failure, shown = failures[0], outcomes[0]
        best.append((shown, failure))
        if not shown.fired:  # it fails without any fault
            break
        shown = yield from reduce(asker, shown, failure, draw)
        best.append((shown, failure))
        if not any(atom.lasting for atom in shown.fired):
            weaker = yield from weaken(asker, shown, failure, smaller(repertoire.faults))
            shown = (yield from reduce(asker, weaker, failure, draw)) if weaker is not shown else weaker
            best.append((shown, failure))
        if (yield from asker.confirm(shown.asked if any(a.lasting for a in shown.fired) else shown.fired, failure)):
            break
        best.clear()  # chance had a hand in it, here or on the way
    else:
        return
    if may_shorten and text.strip():
        shown = yield from shorten(asker, shown, failure, text)
        best.append((shown, failure))


def _shrunk(
    work: Work,
    case: Case,
    best: Sequence[tuple[Outcome, Failure]],
    prober: Prober,
    seed: int,
    stopped: bool,
    why: str,
) -> Shrunk:
    runs = len(prober.done)
    if not best:
        return Shrunk(None, runs=runs, interrupted=stopped, why=why or "the case does not fail any more")
    shown, failure = best[-1]
    judged = next(judged for judged in prober.done if judged.run.id == shown.run)
    reason = next((v.reason for i, v in judged.verdicts if str(i.id) == failure.invariant), "")
    text = shown.text if shown.text is not None else case.text
    prompt = case.prompt if text is None else None
    order = tuple(dict.fromkeys(atom for atom, _ in shown.firings))
    smallest = Case(frozenset(order), prompt, text, failure.invariant, seed)
    line = command_line(work, prompt or 0, text, order, seed)
    return Shrunk(smallest, line, failure.invariant, reason, judged.run, runs, stopped, why)


def _report(
    work: Work,
    shrunk: Shrunk,
    prober: Prober | None,
    judges: Sequence[Invariant],
    *,
    seed: int,
    started_at: str,
    took_ms: float,
) -> Report:
    """What became of the case, and every run that was made."""
    done = [] if prober is None else prober.done
    paced = paced_by(None if prober is None else prober.runner.pacing)
    by_id, case, run = {judged.run.id: judged for judged in done}, shrunk.case, shrunk.run
    by_hand = shrunk.why == "interrupted"
    findings: tuple[Finding, ...] = ()
    cells: tuple[CellResult, ...] = ()
    if case is None or run is None:
        headline = f"nothing was made smaller: {shrunk.why}"
    else:
        severity = next(i.severity for i in judges if str(i.id) == shrunk.invariant)
        schedule = tuple(at(atom) for atom in sorted(case.atoms))
        findings = (Finding(schedule, shrunk.invariant, severity, shrunk.reason, run.prompt, run.id, shrunk.line),)
        cells = cells_of(by_id[run.id])
        faults = " and ".join(f"{fault.site}={fault.fault}" for fault in schedule) or "no fault at all"
        headline = f"{faults} breaks {shrunk.invariant}"
        headline = f"{shrunk.why}; so far: {headline}" if shrunk.interrupted else headline
    runs = tuple(judged.run for judged in sorted(done, key=lambda judged: (len(judged.run.id), judged.run.id)))
    return Report(
        "shrink", "fail" if findings else "inconclusive", 130 if by_hand else 1 if findings else 3, headline, seed,
        started_at, took_ms, {}, cells, runs,
        scenarios=tuple(ScenarioInfo(name, tuple(name.split("; "))) for name in {cell.scenario for cell in cells}),
        invariants=tuple(InvariantInfo(str(i.id), i.type, i.severity, i.description or "", i.when) for i in judges),
        prompts=tuple(work.config.golden_prompts),
        interrupted=by_hand,
        stopped=shrunk.why if shrunk.interrupted and not by_hand else "",
        config=str(work.path),
        agent=in_words(work.config),
        version=__version__,
        findings=findings,
        notes=paced.lines,
        pacing=paced.known,
    )  # fmt: skip


def session_of(shrunk: Shrunk, config: Config) -> ReplaySession:
    """The smallest case as a replay session: its input, what its tools said, its other faults, and its rules.

    Args:
        shrunk: it, with its run.
        config: names the rules.

    Raises:
        Misuse: there is no smallest case.
    """
    from flakestorm.api.exporting import session_for

    run, report = shrunk.run, shrunk.report
    if run is None or report is None:
        raise Misuse("there is no smallest case to make a session of")
    name = f"{shrunk.invariant} is broken"
    return session_for(report, run, config, id=f"shrunk-{run.id}", name=name)
