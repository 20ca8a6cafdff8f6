"""`shrink`: a failing case meets the shrinker (`engine/shrink.py`), and the agent under test."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from flakestorm.api.carrying import Work, hub_of, in_a_loop, runner_of, seed_of
from flakestorm.api.options import Options
from flakestorm.api.probing import Prober, command_line
from flakestorm.config.model import Invariant
from flakestorm.contracts.matrix import prepare
from flakestorm.core.choices import Choices, Draw
from flakestorm.core.site import Site
from flakestorm.engine.asking import Asker
from flakestorm.engine.atoms import Asking, Atom, Atoms, Failure, Outcome
from flakestorm.engine.events import Note, Planned, Progressed, RunResult
from flakestorm.engine.repertoire import Repertoire
from flakestorm.engine.shrink import reduce, shorten, smaller, weaken
from flakestorm.errors import Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.world import LocalWorld
from flakestorm.faults.planned import parse_fault

__all__ = ["Case", "Shrunk", "case_of_line", "case_of_run", "case_of_tape", "session_of", "shrink"]

BUDGET = 200


@dataclass(frozen=True, slots=True)
class Case:
    """A failing run to be made smaller.

    Args:
        atoms: its faults.
        prompt: index of its golden prompt, or None.
        text: its input, where that is no golden prompt.
        invariant: which rule it broke; any when empty.
        seed: of the run, where it is known.
    """

    atoms: Atoms
    prompt: int | None = None
    text: str | None = None
    invariant: str = ""
    seed: int | None = None


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
    """

    case: Case | None
    line: str = ""
    invariant: str = ""
    reason: str = ""
    run: RunResult | None = None
    runs: int = 0
    interrupted: bool = False
    why: str = ""


def case_of_line(line: str, *, golden: Sequence[str], invariant: str = "", seed: int | None = None) -> Case:
    """The case that a `flakestorm run ... --inject ...` line tells.

    Raises:
        Misuse: it is not such a line.
    """
    words, atoms = shlex.split(line), set[Atom]()
    prompt: int | None = None
    text: str | None = None
    for name, value in pairwise(words):
        if name == "--inject":
            atoms.add(_atom(value))
        elif name == "--prompt":
            prompt = int(value)
        elif name == "--input":
            text = value
        elif name == "--seed":
            seed = int(value)
    if text is not None and text in golden:
        prompt, text = list(golden).index(text), None
    return Case(frozenset(atoms), 0 if prompt is None and text is None else prompt, text, invariant, seed)


def case_of_run(run: RunResult, *, golden: Sequence[str], invariant: str, seed: int) -> Case:
    """The case of a run in a report."""
    return case_of_line(run.reproduce, golden=golden, invariant=invariant, seed=seed)


def case_of_tape(path: Path, *, golden: Sequence[str]) -> Case:
    """The case that a tape holds: its input, and the faults that fired, with their modes' own settings.

    Raises:
        Misuse: it cannot be read.
    """
    from flakestorm.tape.reader import Tape

    tape = Tape.open(path)
    fired = dict.fromkeys((f.site, f.mode) for x in tape.exchanges() for f in x.faults)
    text = str(tape.header.get("original", tape.header.get("input", "")))
    prompt = list(golden).index(text) if text in golden else None
    seed = tape.header.get("seed")
    atoms = frozenset(Atom(site, mode) for site, mode in fired)
    return Case(atoms, prompt, None if prompt is not None else text, "", seed if isinstance(seed, int) else None)


def _atom(line: str) -> Atom:
    planned = parse_fault(line)
    if planned.spec.site is None:
        return Atom(Site(planned.expected.kind, planned.expected.name, 1), planned.fault, lasting=True)
    return Atom(Site.parse(planned.spec.site), planned.fault)


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
    seed = seed_of(config, options, case.seed)
    text = config.golden_prompts[case.prompt] if case.prompt is not None else case.text or ""
    judges = tuple(i.probing([]) for i in invariants if text in i.probes) or tuple(
        i for i in invariants if not i.probes
    )
    world, asker = LocalWorld(options.tapes), Asker()
    best: list[tuple[Outcome, Failure]] = []
    draw = Choices(seed).stream("shrink")
    steps = _steps(asker, case, repertoire, draw, text, best, may_shorten=shorter or case.prompt is None)
    quiet = replace(options, listener=lambda _: None)
    options.listener(Planned("shrink", budget))

    async def work_it() -> Shrunk:
        stopped, why = False, ""
        with interruptible() as signals:
            async with runner_of(work, (), judges, quiet, seed, world, hub_of(config)) as runner:
                prober = Prober(work, runner, options.listener, world)
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
        return _shrunk(work, case, best, prober, seed, stopped, why)

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


def session_of(shrunk: Shrunk, *, contract: str) -> dict[str, object]:
    """The smallest case as a replay session: its input, what its tools said, and the contract it must meet.

    Args:
        shrunk: it, with its run.
        contract: the contract's name.
    """
    from flakestorm.tape.reader import Tape
    from flakestorm.wire.encoding import decode_body

    run = shrunk.run
    if run is None:
        raise Misuse("there is no smallest case to make a session of")
    replies = []
    for x in Tape.open(Path(run.tape)).exchanges():
        if x.kind not in ("tool", "mcp"):
            continue
        said = decode_body(x.reply.body, x.reply.headers).decode("utf-8", "replace")
        try:
            response: object = json.loads(said)
        except ValueError:
            response = said
        replies.append(
            {"tool": x.name, "response": response, "status": x.reply.status, "latency_ms": round(x.duration_ms)}
        )
    return {
        "id": f"shrunk-{run.id}",
        "name": f"{shrunk.invariant} is broken",
        "source": "flakestorm shrink",
        "input": run.input,
        "tool_responses": replies,
        "expected_failure": shrunk.reason,
        "contract": contract,
    }
