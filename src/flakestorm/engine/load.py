"""Load: the same prompts, by more and more users at once.

A level is a scenario without faults in which so many runs are under way at a time, so map, score and gate are those of
every other command.

The loop is closed, where nothing else is asked for: a user asks again when the answer has come, and a level's first
runs begin together. So an agent that stalls is asked less often; what is measured is what so many users would wait. In
an open loop new users come at a given rate, whatever becomes of those before (Schroeder, Wierman and Harchol-Balter,
*Open Versus Closed: A Cautionary Tale*, 2006), and a latency counts from when a user came, also where there was no room
to ask at once: what came late would else be left out just when it is slow (Tene, *How NOT to Measure Latency*, 2015).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from flakestorm.config.model import Invariant, Scenario
from flakestorm.contracts.matrix import needs_baseline
from flakestorm.engine.events import CellResult, RunResult
from flakestorm.engine.latency import limit_at, spell
from flakestorm.engine.loaded import LatencyAt, LevelResult, Loaded, Pace, PromiseAt
from flakestorm.engine.plan import Plan, Trial, bounded, run_id
from flakestorm.stats.difference import agresti_caffo
from flakestorm.stats.intervals import wilson
from flakestorm.stats.percentiles import percentile
from flakestorm.tape.model import Exchange

__all__ = ["MOST", "PERCENTS", "Untold", "load_plan", "loaded", "whole_levels"]


class Untold(Sequence[Exchange]):
    """The exchanges of a run that cannot be told from those of others.

    Raises:
        LookupError: somebody looks; a rule that does is inconclusive then.
    """

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self
        raise LookupError(_UNTOLD)

    def __len__(self) -> int:
        raise LookupError(_UNTOLD)


_UNTOLD = "under load, the calls of one run of a shared agent cannot be told from those of others"

MOST = 500
"""How many runs may be under way at once, at whatever rate users come."""

PERCENTS = (50, 90, 95, 99)
"""Which percentiles of the latencies are given, where there are runs enough."""


def load_plan(
    *,
    users: Sequence[int],
    runs: int,
    invariants: Sequence[Invariant],
    prompts: Sequence[str],
    trials: int | None = None,
    notes: Sequence[str] = (),
    rates: Sequence[float] = (),
    limits: Sequence[tuple[int, float]] = (),
) -> Plan:
    """Lay out the runs of every level.

    Args:
        users: of each level.
        runs: of each level, at the least; it has also at least as many as users, and all prompts equally often.
        invariants: what is judged; those with `probes` are judged on the probes.
        prompts: the golden prompts.
        trials: runs of each prompt in place of `runs`; a level still has as many runs as users.
        notes: what is known to be missing before anything is run.
        rates: of each level, how many new users come in a second; in place of `users`.
        limits: see `Plan.limits`.
    """
    each_second = " a second" if rates else ""
    scenarios = tuple(Scenario(name=f"{n:g} user{'' if n == 1 else 's'}{each_second}") for n in rates or users)
    probes = tuple(dict.fromkeys(probe for invariant in invariants for probe in invariant.probes))
    plan = Plan(
        "load", scenarios, tuple(invariants), (*prompts, *probes), len(prompts), (), notes=tuple(notes),
        users=(MOST,) * len(rates) if rates else tuple(users), rates=tuple(rates), limits=tuple(limits),
    )  # fmt: skip
    chosen = [p for p in range(len(plan.prompts)) if plan.judges(p)]
    baseline = plan.controls(p for p in chosen if any(map(needs_baseline, plan.judges(p))))
    made: list[Trial] = []
    for scenario, count in zip(scenarios, [1] * len(rates) if rates else users, strict=True):
        each = max(trials or -(-runs // len(chosen)), -(-count // len(chosen))) if chosen else 0
        bounded(len(scenarios) * len(chosen), each)
        made += [  # the prompts take turns, so that users ask different things at the same time
            Trial(run_id(len(baseline) + len(made) + at), scenario, p, plan.prompts[p], number, plan.judges(p))
            for at, (number, p) in enumerate((n, p) for n in range(1, each + 1) for p in chosen)
        ]
    return replace(plan, trials=tuple(made), baseline=baseline)


def loaded(plan: Plan, runs: Sequence[RunResult], cells: Sequence[CellResult], paces: Mapping[str, Pace]) -> Loaded:
    """How each level went, as far as it was made.

    Args:
        plan: by `load_plan`.
        runs, cells: of the whole command.
        paces: of each level that was finished, by the scenario's name.
    """
    levels: list[LevelResult] = []
    rates = plan.rates or (None,) * len(plan.scenarios)
    for scenario, users, rate in zip(plan.scenarios, plan.users, rates, strict=True):
        level = _level(
            scenario.name,
            users,
            [run for run in runs if run.scenario == scenario.name],
            [cell for cell in cells if cell.scenario == scenario.name],
            paces.get(scenario.name),
        )
        level = replace(level, rate=rate, limits=tuple(limit_at(level, *limit) for limit in plan.limits))
        levels.append(_compared(levels[0], level) if levels else level)
    knee = next((level for level in levels if level.slower or any(p.worse for p in level.promises)), None)
    at = None if knee is None else knee.users if knee.rate is None else knee.rate
    return Loaded(tuple(levels), at, _why(levels, knee))


def _level(
    name: str, users: int, runs: Sequence[RunResult], cells: Sequence[CellResult], pace: Pace | None
) -> LevelResult:
    unknown = sum(_unknown(run) for run in runs)
    answered = sum(run.error is None for run in runs)
    waits = [run.latency_ms if run.error is None else float("inf") for run in runs if not _unknown(run)]
    found = (percentile(waits, percent) for percent in PERCENTS)
    took_ms = None if pace is None else round(pace.took_ms, 1)
    return LevelResult(
        name,
        users,
        len(runs),
        answered,
        unknown,
        took_ms,
        round(answered / took_ms * 1000, 3) if took_ms else None,
        round(sum(run.latency_ms for run in runs) / took_ms, 2) if took_ms else None,
        None if pace is None or pace.own_ms is None else round(pace.own_ms, 1),
        tuple(LatencyAt(p.percent, _ms(p.value), _ms(p.low), _ms(p.high), p.n) for p in found if p is not None),
        tuple(_promise(name, [c for c in cells if c.invariant == name]) for name in dict.fromkeys(
            cell.invariant for cell in cells)),
    )  # fmt: skip


def whole_levels(plan: Plan, before: Loaded | None, kept: Collection[str]) -> set[str]:
    """The levels of an earlier report that need not be made again, by the names of their scenarios.

    A level is one measurement: it is taken over when it was finished and all of its runs are, else made anew.

    Args:
        plan: by `load_plan`.
        before: what the report says of its levels.
        kept: the ids of its runs that could be taken over.
    """
    levels = {level.scenario: level for level in (before.levels if before else ())}
    found = set[str]()
    for scenario in plan.scenarios:
        level = levels.get(scenario.name)
        ids = {trial.run for trial in plan.trials if trial.scenario.name == scenario.name}
        if level is not None and level.duration_ms is not None and len(ids) == level.runs and ids <= set(kept):
            found.add(scenario.name)
    return found


def _unknown(run: RunResult) -> bool:
    return (run.error or "").startswith("unreachable")


def _ms(value: float) -> float | None:
    return value if isfinite(value) else None


def _promise(invariant: str, cells: Sequence[CellResult]) -> PromiseAt:
    passed, failed = (sum(c.verdict == outcome for c in cells) for outcome in ("pass", "fail"))
    interval = wilson(passed, passed + failed)
    low, high = interval or (None, None)
    failing = False
    for prompt in {cell.prompt for cell in cells}:
        mine = [c for c in cells if c.prompt == prompt]
        good, bad = (sum(c.verdict == outcome for c in mine) for outcome in ("pass", "fail"))
        failing = failing or (good + bad > 0 and good / (good + bad) < mine[0].min_pass_rate)
    return PromiseAt(invariant, passed, passed + failed, len(cells) - passed - failed, low, high, failing)


def _compared(first: LevelResult, level: LevelResult) -> LevelResult:
    """The level, with what got worse since the first one."""
    before = {promise.invariant: promise for promise in first.promises}
    promises = tuple(replace(p, worse=_worse(before.get(p.invariant), p)) for p in level.promises)
    return replace(level, promises=promises, slower=_slower(_median(first), _median(level), level.own_ms or 0.0))


def _worse(first: PromiseAt | None, now: PromiseAt) -> bool:
    if first is None or first.failing or not now.failing:
        return False
    change = agresti_caffo(first.passed, first.conclusive, now.passed, now.conclusive)
    return change is not None and change.high < 0


def _median(level: LevelResult) -> LatencyAt | None:
    return next((latency for latency in level.latencies if latency.percent == 50), None)


def _slower(first: LatencyAt | None, now: LatencyAt | None, own_ms: float) -> bool:
    if first is None or now is None or first.value is None:
        return False
    doubled = now.value is None or now.value >= 2 * first.value + own_ms
    apart = first.high is not None and (now.low is None or now.low > first.high)
    return doubled and apart


def _why(levels: Sequence[LevelResult], knee: LevelResult | None) -> str:
    if knee is None:
        done = [level.scenario for level in levels if level.duration_ms is not None]
        if not done:
            return "no level was finished"
        already = [p.invariant for p in levels[0].promises if p.failing]
        said = f" ({', '.join(already)} broken from the first level on)" if already else ""
        return f"no knee up to {done[-1]}{said}"
    found = [f"{p.invariant} holds in {p.passed} of {p.conclusive} runs" for p in knee.promises if p.worse]
    if knee.slower:
        now, first = _median(knee), _median(levels[0])
        is_, was = (spell(None if median is None else median.value) for median in (now, first))
        found.append(f"the median latency is {is_}, after {was} at first")
    return f"the knee is at {knee.scenario}: {', '.join(found)}"
