"""`doctor`: is the agent deterministic, once its world, its clock and its draws are the same?

One run is recorded, and the others are played against that recording with the same draws, each by an agent of its own.
What must not matter varies: process, time of day, folder for temporary files, and PYTHONHASHSEED in all but the first
runs. So what differs among the first differs by itself, and what differs only later does so by the hash seed.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from msgspec.structs import replace as with_

from flakestorm.api.carrying import Work, hub_of, runner_of
from flakestorm.api.loops import in_a_loop
from flakestorm.api.options import Options
from flakestorm.api.redaction import redaction_of
from flakestorm.boundary.draws import fresh
from flakestorm.config.model import Config
from flakestorm.core.choices import Choices
from flakestorm.core.draws import Draws
from flakestorm.engine.events import RunResult
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import BASELINE, Trial
from flakestorm.errors import Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.world import LocalWorld
from flakestorm.tape.model import Exchange
from flakestorm.tape.reader import Tape
from flakestorm.tape.rehearsal import rehearsal
from flakestorm.tape.sources import Difference, compare
from flakestorm.tape.telling import Telling

__all__ = ["REPLAYS", "Diagnosis", "Finding", "diagnose"]

REPLAYS = 5
"""How often a recording is played, unless something else is asked for."""

_GUESSED = ("unknown", "random", "hash seed")


@dataclass(frozen=True, slots=True)
class Finding:
    """One place in which runs differ.

    Args:
        difference: the first time it was seen.
        replays: in which of them, from 1.
    """

    difference: Difference
    replays: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found out.

    Args:
        runs: the recorded run and the replays.
        calls: how many calls were recorded.
        draws: what clock and draws of all runs followed from.
        findings: where runs differ, in the order of the recording.
        notes: what could not be varied or seen.
    """

    runs: tuple[RunResult, ...]
    calls: int
    draws: Draws
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 deterministic, 1 not, 3 where the recording shows nothing that could be compared."""
        first = self.runs[0]
        if self.findings:
            return 1
        unreached = first.error is not None and first.error.startswith("unreachable")
        return 3 if unreached or not (self.calls or first.output) else 0


def diagnose(
    work: Work, options: Options, *, replays: int = REPLAYS, done: Callable[[int], None] = lambda _: None
) -> Diagnosis:
    """Record the first golden prompt once, play it again, and compare.

    Args:
        work: the project.
        options: how.
        replays: how often to play it.
        done: is told the number of each finished run, from 0.

    Raises:
        Misuse: somebody else starts the agent, so that its draws cannot be virtual.
    """
    config = work.config
    agent = config.agent
    if agent.type == "http" and not agent.start:
        raise Misuse(
            "doctor starts the agent again for each run, with a clock and draws of its own; say how it is launched "
            "(agent.start), or name the program: flakestorm doctor -- COMMAND"
        )
    draws, world = fresh(), LocalWorld(options.tapes)
    here = agent.type not in ("http", "command")
    runs: list[RunResult] = []
    tapes: list[list[Exchange]] = []
    with tempfile.TemporaryDirectory(prefix="flakestorm-doctor-") as folder:
        for n in range(replays + 1):
            one = _varied(work, draws, n, Path(folder)) if not here else work
            run = in_a_loop(partial(_run, one, options, draws, world, n, tapes[0] if tapes else None))
            runs.append(run.run)
            tapes.append(Tape.open(run.run.tape).exchanges())
            done(n)
            if n == 0 and run.run.error is not None and run.run.error.startswith("unreachable"):
                break
    return Diagnosis(tuple(runs), len(tapes[0]), draws, _findings(runs, tapes, here), _notes(runs, tapes, here))


async def _run(
    work: Work, options: Options, draws: Draws, world: LocalWorld, n: int, recorded: Sequence[Exchange] | None
) -> Judged:
    hub = hub_of(work.config, draws, replaying=recorded is not None)
    name = "doctor" if n == 0 else f"doctor-replay-{n}"
    trial = Trial(name, BASELINE, 0, work.config.golden_prompts[0], 1, ())
    drawing = hub.drawing(name)
    if drawing is None:
        raise AssertionError("this hub has draws")
    telling = Telling(redaction_of(work.config, 0)())
    within = () if recorded is None else (rehearsal(recorded, drawing.recall, telling),)
    found: list[Judged] = []
    one = replace(options, concurrency=1)
    with interruptible() as signals:
        try:
            hooks = Hooks(within=lambda _, __: within)
            async with runner_of(work, [BASELINE], [], one, 0, world, hub, hooks) as runner:
                await runner.agent.start()
                await runner.carry_out([trial], found.append)
        except asyncio.CancelledError:
            if signals:
                raise KeyboardInterrupt from None
            raise
    return found[0]


@dataclass(frozen=True, slots=True)
class _Varied:
    """The same project with another environment."""

    config: Config
    path: Path
    again: tuple[str, ...] = ()


def _varied(work: Work, draws: Draws, n: int, folder: Path) -> Work:
    """What launches run n: up to the third, with the hash seed of the recording."""
    temporary = folder / str(n)
    temporary.mkdir()
    seed = draws.hash_seed if n < 3 else str(Choices(draws.seed, "doctor").below(2**32, n))
    env = {**work.config.agent.env, "PYTHONHASHSEED": seed, "TMPDIR": str(temporary)}
    config = with_(work.config, agent=with_(work.config.agent, env=env)).at(work.config.folder)
    return _Varied(config, work.path, work.again)


def _findings(runs: Sequence[RunResult], tapes: Sequence[list[Exchange]], here: bool) -> tuple[Finding, ...]:
    found: dict[tuple[str, str], Finding] = {}
    for n in range(1, len(runs)):
        outputs = tuple(run.output if run.error is None else f"error: {run.error}" for run in (runs[0], runs[n]))
        for difference in compare(tapes[0], tapes[n], (outputs[0], outputs[1])):
            key = difference.site, difference.where
            known = found.get(key)
            found[key] = Finding(difference, (n,)) if known is None else replace(known, replays=(*known.replays, n))
    places = {str(exchange.site): exchange.n for exchange in tapes[0]}
    ordered = sorted(found.values(), key=lambda finding: places.get(finding.difference.site, len(places)))
    return tuple(ordered if here else map(_reconsidered, ordered))


def _reconsidered(finding: Finding) -> Finding:
    """What the look of a difference suggests, corrected by when it was seen."""
    difference = finding.difference
    if difference.source in _GUESSED and min(finding.replays) >= 3:
        return replace(finding, difference=replace(difference, source="hash seed"))
    if difference.source == "hash seed" and min(finding.replays) < 3:  # the order changed with the same hash seed
        return replace(finding, difference=replace(difference, source="concurrency"))
    return finding


def _notes(runs: Sequence[RunResult], tapes: Sequence[list[Exchange]], here: bool) -> tuple[str, ...]:
    notes = list(dict.fromkeys(remark for run in runs for remark in run.remarks))
    if not tapes[0]:
        notes.append("no call crossed the boundary: only outputs were compared")
    if here:
        notes.append(
            "the agent lives in this process, so PYTHONHASHSEED and the folder for temporary files did not vary; "
            "doctor -- COMMAND varies them"
        )
    return tuple(notes)
