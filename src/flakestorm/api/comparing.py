"""Carrying out a comparison: both versions run the same trials, batch by batch, until the pairs say enough.

What is judged is HEAD's contract, by HEAD's invariants, on both versions; BASE gives its agent alone. A version that is
a report is not run, and the other one runs what that report holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from msgspec.structs import asdict
from msgspec.structs import replace as changed_in

from flakestorm.api.carrying import in_words, seed_of
from flakestorm.api.loops import in_a_loop
from flakestorm.api.options import Options
from flakestorm.api.replays import Replays, timed
from flakestorm.api.sides import Live, key_of, side_of, sides_in, texts_of
from flakestorm.api.versions import Version, version
from flakestorm.config import contract_of, require_invariants, scenarios_of
from flakestorm.config.model import Config, Scenario
from flakestorm.contracts.matrix import prepare
from flakestorm.core.choices import entropy_seed
from flakestorm.engine.compare import Compared, Comparison, Key, Pair, Ruling, Side, pair, rule
from flakestorm.engine.events import Planned, Report
from flakestorm.engine.pacing import Pacing
from flakestorm.engine.plan import BASELINE, Plan, Trial, make_plan
from flakestorm.errors import Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.world import LocalWorld

__all__ = ["ALPHA", "DELTA", "MAX_PAIRS", "Comparison", "Terms", "compare", "plan_of", "would_run"]

ALPHA, DELTA, MAX_PAIRS = 0.05, 0.1, 200
"""What is taken where nothing is said: 163 pairs show "not worse by .1" where a fifth of them differ."""


class Terms(NamedTuple):
    """Args:
    alpha: how likely a false regression may be, and a false "not worse".
    delta: how much worse is still acceptable, as a difference of rates.
    max_pairs: so many pairs are enough, whatever they say.
    """

    alpha: float = ALPHA
    delta: float = DELTA
    max_pairs: int = MAX_PAIRS


def compare(
    base: str | Path,
    head: str | Path,
    *,
    config: str | Path = "flakestorm.yaml",
    terms: Terms | None = None,
    options: Options | None = None,
    saved: Callable[[str], Report] | None = None,
    replay: bool = True,
    earlier: Sequence[Pair] = (),
) -> Comparison:
    """Compare two versions of an agent.

    Args:
        base, head: each a config, a git ref, a JSON report, or the id of a saved report.
        config: of the project: the file whose path a git ref's config has, beside which the store lies.
        terms: how sure, how much, how long.
        options: how runs are carried out.
        saved: gives the report that the store knows by a name.
        replay: whether BASE's tapes are played to HEAD first, and what they tell is not run; see `api/replays.py`.
        earlier: pairs of an earlier, interrupted comparison of the same with the same seed; they are not made again.

    Raises:
        Misuse: a name means nothing, or the two have nothing in common; the message says what to do.
    """
    terms, options = terms or Terms(), options or Options()
    if not (0 < terms.alpha < 1 and 0 < terms.delta < 1 and terms.max_pairs >= 1):
        raise Misuse(f"alpha and delta lie between 0 and 1, and there is at least one pair; not {terms}")
    with ExitStack() as open_:
        find = saved or _nothing_saved
        both = [open_.enter_context(version(str(name), Path(config), find)) for name in (base, head)]
        return in_a_loop(_Comparing(both[0], both[1], terms, options, replay, pairs=list(earlier)).run)


def _nothing_saved(name: str) -> Report:
    raise Misuse(f"no saved report {name!r} is looked for here")


@dataclass
class _Comparing:
    """One comparison under way."""

    base: Version
    head: Version
    terms: Terms
    options: Options
    replay: bool
    notes: list[str] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    _pacing: Pacing | None = None
    _replays: Replays | None = None
    _batches: int = 0

    async def run(self) -> Comparison:
        """Make pairs until they say enough, the most are made, the budget is reached, or somebody interrupts."""
        seed = self._seed()
        world = LocalWorld(self.options.tapes)
        began_s, started_at, interrupted = world.monotonic(), world.now(), False
        live = [found.config for found in (self.head, self.base) if found.config is not None]
        with world.reserved():
            if live:
                interrupted = await self._live(live[0], seed)
            else:
                self._recorded()
        doubt = "" if self.options.budget is None else self.options.budget.doubt
        return Comparison(
            _told(self.base), _told(self.head), self._rule(), tuple(self.pairs), self.terms.alpha, self.terms.delta,
            seed, started_at, round((world.monotonic() - began_s) * 1000, 1), self._stopped, interrupted,
            (*self.notes, *([doubt] if doubt else ()), *(self._pacing.paced.lines if self._pacing else ())),
        )  # fmt: skip

    def _rule(self) -> Ruling:
        return rule(self.pairs, alpha=self.terms.alpha, delta=self.terms.delta)

    @property
    def _stopped(self) -> str:
        return "" if self.options.budget is None else self.options.budget.reached

    def _seed(self) -> int:
        reports = [found.report for found in (self.base, self.head) if found.report is not None]
        if len({report.seed for report in reports}) > 1:
            self.notes.append("the reports were made with different seeds, so it takes more pairs to see a difference")
        if reports:
            seed = reports[0].seed
            if self.options.seed not in (None, seed) and len(reports) == 1:
                raise Misuse(f"the report was made with seed {seed}; compare with that seed or none")
            return seed
        config = self.head.config or self.base.config
        return entropy_seed() if config is None else seed_of(config, self.options)

    def _recorded(self) -> None:
        """Both are reports: every pair there is."""
        base, head = (sides_in(found.report) for found in (self.base, self.head) if found.report is not None)
        shared = [key for key in base if key in head]
        if not shared:
            raise Misuse(
                f"{self.base.name} and {self.head.name} have no scenario, prompt and trial in common, so no run of one "
                "can be compared with one of the other"
            )
        self._unpaired(len(base) + len(head) - 2 * len(shared))
        self.pairs = [pair(key, base[key], head[key]) for key in shared]

    def _unpaired(self, runs: int) -> None:
        if runs:
            self.notes.append(f"{runs} runs of the reports have no counterpart and were left out")

    async def _live(self, config: Config, seed: int) -> bool:
        """Run what is to be run; gives whether somebody interrupted it."""
        plan = plan_of(config, self.terms.max_pairs, self.options.trials)
        prepare(plan.invariants)
        self.notes += _same_place(self.base, self.head)
        if config.contract is not None and config.contract.generate is not None:
            self.notes.append(f"scenarios that {config.contract.generate} generates are not compared")
        sides = self._sides(config, plan, seed)
        known = {each.key for each in self.pairs}
        names = texts_of(plan.prompts)
        trials = [trial for trial in self._trials(plan, sides) if key_of(trial, names) not in known]
        self._batches = max((each.batch for each in self.pairs), default=0)
        self.options.listener(Planned("compare", len(trials) * sum(isinstance(side, Live) for side in sides)))
        with interruptible() as signals:
            try:
                while trials and not self._stopped:
                    size = self._batch(sides)
                    batch, trials = trials[:size], trials[size:]
                    try:
                        await self._make(batch, sides)
                    finally:
                        self._gather(batch, sides, names)
                    if self._rule().conclusion != "inconclusive":
                        break
            except asyncio.CancelledError:
                if not signals:
                    raise
                return True
            finally:
                for side in sides:
                    if isinstance(side, Live):
                        await side.close()
        return False

    def _sides(self, config: Config, plan: Plan, seed: int) -> list[Live | Mapping[Key, Side]]:
        """BASE and HEAD. A HEAD that is run knows BASE's runs, which may tell what it does."""
        names = texts_of(plan.prompts)
        self._pacing = Pacing(monotonic, config.advanced.rate_limit)  # both versions use up one budget
        options = replace(self.options, pacing=self._pacing)

        def side(found: Version, folder: str, replays: Replays | None = None) -> Live | Mapping[Key, Side]:
            if found.report is not None:
                return sides_in(found.report)
            own = _judged_as(config, found.config or config)
            return Live(found, own, plan, options, seed, folder, replays=replays)

        base = side(self.base, "base")
        if self.replay and self.head.config is not None:
            if by_time := timed(plan.invariants):
                self.notes.append(f"BASE's tapes were not played to HEAD: {', '.join(by_time)} judges how long it took")
            else:
                self._replays = Replays(
                    self.head.config,
                    self.options.tapes / "replays",
                    lambda at: base.done.get(at.run) if isinstance(base, Live) else base.get(key_of(at, names)),
                )
        return [base, side(self.head, "head", self._replays)]

    def _trials(self, plan: Plan, sides: Sequence[Live | Mapping[Key, Side]]) -> list[Trial]:
        """In rounds of one trial of each task, as many as are wanted, and those that a report holds."""
        names = texts_of(plan.prompts)
        trials = sorted(plan.trials, key=lambda trial: trial.number)
        for side in sides:
            if not isinstance(side, Live):
                trials = [trial for trial in trials if key_of(trial, names) in side]
                if not trials:
                    raise Misuse(
                        "the report and the config have no scenario and prompt in common, so no run of one can be "
                        "compared with one of the other"
                    )
                self._unpaired(len(side) - len(trials))
        return trials[: self.terms.max_pairs]

    def _batch(self, sides: Sequence[Live | Mapping[Key, Side]]) -> int:
        """How many pairs to make before looking: enough to keep every run that may be under way, under way."""
        live = [side for side in sides if isinstance(side, Live)]
        size = max(side.concurrency for side in live)
        if any(side.fleeting for side in live):  # these start anew for each batch
            size = max(size, len(self.pairs) // 4)
        left = None if self.options.budget is None else self.options.budget.left
        return size if left is None else max(1, min(size, left // len(live)))

    async def _make(self, batch: Sequence[Trial], sides: Sequence[Live | Mapping[Key, Side]]) -> None:
        """Both versions' runs. They take turns at being first, so that what only the first one pays for evens out;
        where BASE's tapes may tell what HEAD does, BASE is."""
        self._batches += 1
        if self._replays is not None and self._replays.promising(batch):
            order = list(sides)
        else:
            order = list(sides) if self._batches % 2 else [*reversed(sides)]
        for side in order:
            if isinstance(side, Live):
                await side.run(batch)

    def _gather(self, batch: Sequence[Trial], sides: Sequence[Live | Mapping[Key, Side]], names: Sequence[str]) -> None:
        """The pairs both of whose runs have ended."""
        replays = self._replays
        for trial in batch:
            key = key_of(trial, names)
            base, head = (
                side_of(side.done.get(trial.run)) if isinstance(side, Live) else side.get(key) for side in sides
            )
            if base is not None and head is not None:
                made = pair(key, base, head, free=replays is not None and trial.run in replays.free)
                replayed = 0 if replays is None else replays.taken(trial.run)
                self.pairs.append(replace(made, batch=self._batches, replayed=replayed))


def would_run(
    base: str | Path,
    head: str | Path,
    *,
    config: str | Path,
    terms: Terms,
    options: Options,
    saved: Callable[[str], Report],
) -> list[tuple[str, int, str]]:
    """What a comparison would run at most: for each version that is run, its name, how many runs, and its agent.

    Args and Raises: as `compare`.
    """  # fmt: skip
    with ExitStack() as open_:
        both = [open_.enter_context(version(str(name), Path(config), saved)) for name in (base, head)]
        live = [(found, found.config) for found in both if found.config is not None]
        if not live:
            return []
        plan = plan_of(live[-1][1], terms.max_pairs, options.trials)
        held = [len(found.report.runs) for found in both if found.report is not None]
        runs = min(len(plan.trials), terms.max_pairs, *held) + len(plan.baseline)
        return [(found.name, runs, in_words(found_config)) for found, found_config in live]


def _judged_as(yard: Config, config: Config) -> Config:
    """A version's config, with what judges and names as the other one has it: nothing but the agent may differ."""
    tools = {**config.boundary.tools, **yard.boundary.tools}
    changed = changed_in(config, model=yard.model, boundary=changed_in(config.boundary, tools=tools))
    return changed.at(config.folder)


def plan_of(config: Config, max_pairs: int, trials: int | None = None) -> Plan:
    """What both versions run: the contract's matrix, else the golden prompts without chaos and under the `chaos` block.

    Args:
        config: HEAD's.
        max_pairs: so many trials in all, at least; trials: of each task, where that is said.
    """
    if config.contract is not None:
        invariants = contract_of(config).invariants or config.invariants
        scenarios = scenarios_of(config) or [BASELINE]
    else:
        require_invariants(config)
        invariants, scenarios = config.invariants, [BASELINE]
        if config.chaos is not None:
            scenarios = [*scenarios, Scenario(name="chaos", **asdict(config.chaos))]

    def made(repeats: int) -> Plan:
        return make_plan(
            "compare", scenarios=scenarios, invariants=invariants, prompts=config.golden_prompts, trials=repeats
        )

    tasks = len(made(1).trials)
    return made(trials or max(1, -(-max_pairs // max(tasks, 1))))


def _told(found: Version) -> Compared:
    if found.report is not None:
        return Compared(found.name, found.kind, found.report.config, found.report.agent)
    agent = "" if found.config is None else in_words(found.config)
    return Compared(found.name, found.kind, str(found.path), agent, found.commit)


def _same_place(base: Version, head: Version) -> Iterator[str]:
    agents = [found.config.agent for found in (base, head) if found.config is not None]
    running = [agent.endpoint for agent in agents if agent.type == "http" and not agent.start]
    if len(running) == 2 and running[0] == running[1]:
        yield (
            f"both versions are the agent at {running[0]}, which flakestorm did not start, so it is compared with "
            "itself; give agent.start, or an endpoint of its own to each version"
        )
