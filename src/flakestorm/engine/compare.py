"""Is HEAD worse than BASE? Runs in pairs, judged by the same invariants, and looked at as they come.

A pair is one scenario, prompt and trial, run by both versions with the same seed. It is *lost* when HEAD breaks more
than it mends: the weights of the invariants that only BASE kept exceed those of the ones that only HEAD kept. The other
way round it is *won*, else *tied*. Where a version keeps or breaks everything at once this is the plain "only BASE
passed"; where both break something, what is newly broken still counts.

Both questions (does HEAD lose more often than it wins? is it worse by less than `delta`?) are answered by e-values, so
one may look after every pair and stop (`stats/sequential.py`). Nothing in between is called either way.
The first question is also asked of each invariant. A yes to any is a regression, so they share the chance of a false
one: what counts is the mean of the e-values, half of it that of the pairs as a whole and half those of the invariants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from flakestorm.config.model import Severity
from flakestorm.contracts.gate import SEVERITY_WEIGHTS
from flakestorm.core.verdict import Outcome
from flakestorm.engine.events import CellResult, RunResult
from flakestorm.engine.repeats import pass_ks
from flakestorm.stats.difference import Difference, agresti_caffo, mean_difference
from flakestorm.stats.intervals import wilson
from flakestorm.stats.multiple import holm
from flakestorm.stats.passk import PassK
from flakestorm.stats.sequential import pairs_needed, regression_evidence, sameness_evidence

__all__ = [
    "Compared",
    "Comparison",
    "Conclusion",
    "Gauge",
    "InvariantLine",
    "Key",
    "Measure",
    "Pair",
    "Ruling",
    "Side",
    "Tally",
    "pair",
    "rule",
]

Conclusion = Literal["regression", "no regression", "inconclusive"]
How = Literal["lost", "won", "tied", "unjudged"]


class Key(NamedTuple):
    """What the runs of a pair have in common: the scenario's name, the prompt's text, and the trial."""

    scenario: str
    prompt: str
    trial: int


@dataclass(frozen=True, slots=True)
class Side:
    """One version's run of a pair.

    Args:
        run: what happened.
        verdicts: of the invariants that applied, by id, each with its severity.
    """

    run: RunResult
    verdicts: Mapping[str, tuple[Severity, Outcome]]

    @classmethod
    def of(cls, run: RunResult, cells: Iterable[CellResult]) -> Side:
        """The run with the cells that were judged on it."""
        return cls(run, {cell.invariant: (cell.severity, cell.verdict) for cell in cells})


@dataclass(frozen=True, slots=True)
class Pair:
    """Both versions' runs, and how they compare.

    Args:
        key: what they have in common.
        base, head: the runs.
        how: see the module; `unjudged` where no invariant is conclusive on both.
        newly: invariants that only BASE kept; mended: that only HEAD kept.
        base_passed, head_passed: whether the run kept everything that both could be judged by.
        free: whether HEAD was not run live, because every request of it was answered by BASE's tape.
        replayed: how many of the model replies that HEAD got, run live, were those of BASE's tape.
        batch: which pairs were made side by side with it; 0 where nobody knows.
    """

    key: Key
    base: Side
    head: Side
    how: How
    newly: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    base_passed: bool = False
    head_passed: bool = False
    free: bool = False
    batch: int = 0
    replayed: int = 0


def pair(key: Key, base: Side, head: Side, *, free: bool = False) -> Pair:
    """Compare two runs by the invariants that are conclusive on both."""
    shared = _shared(base, head)
    if not shared:
        return Pair(key, base, head, "unjudged", free=free)
    newly = tuple(name for name, (before, after) in shared.items() if before and not after)
    mended = tuple(name for name, (before, after) in shared.items() if after and not before)
    worse = sum(SEVERITY_WEIGHTS[base.verdicts[name][0]] for name in newly)
    better = sum(SEVERITY_WEIGHTS[base.verdicts[name][0]] for name in mended)
    how: How = "lost" if worse > better else "won" if better > worse else "tied"
    before, after = (all(kept[at] for kept in shared.values()) for at in (0, 1))
    return Pair(key, base, head, how, newly, mended, base_passed=before, head_passed=after, free=free)


def _shared(base: Side, head: Side) -> dict[str, tuple[bool, bool]]:
    return {
        name: (said == "pass", head.verdicts[name][1] == "pass")
        for name, (_, said) in base.verdicts.items()
        if said != "inconclusive" and head.verdicts.get(name, ("", "inconclusive"))[1] != "inconclusive"
    }


@dataclass(frozen=True, slots=True)
class Tally:
    """How many pairs came out how."""

    lost: int = 0
    won: int = 0
    tied: int = 0
    unjudged: int = 0

    @classmethod
    def of(cls, hows: Iterable[How]) -> Tally:
        """Count them."""
        count = Counter(hows)
        return cls(count["lost"], count["won"], count["tied"], count["unjudged"])

    @property
    def judged(self) -> int:
        """How many pairs say something, ties included."""
        return self.lost + self.won + self.tied


@dataclass(frozen=True, slots=True)
class InvariantLine:
    """One invariant over all pairs.

    Args:
        invariant, severity: which; severity as BASE has it.
        tally: a pair is lost where only BASE kept it.
        base_kept, head_kept: in how many judged pairs.
        evidence: the e-value against "HEAD breaks it no more often than it mends it".
        p, adjusted: the p-value of that, and Holm's over all invariants and the pairs as a whole.
    """

    invariant: str
    severity: Severity
    tally: Tally
    base_kept: int
    head_kept: int
    evidence: float
    p: float
    adjusted: float = 1.0


@dataclass(frozen=True, slots=True)
class Gauge:
    """A rate of one version."""

    passed: int
    runs: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measure:
    """Something measured on both runs of each pair.

    Args:
        base, head: the means; difference: HEAD minus BASE, with its 95% interval.
        pairs: how many both of whose runs have it.
    """

    base: float
    head: float
    difference: Difference
    pairs: int


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the pairs add up to.

    Args:
        conclusion: `regression`, `no regression` or `inconclusive`; headline: why, in one sentence.
        tally: the pairs.
        regression, improvement, not_worse: e-values against "HEAD loses no more often than it wins" (in all, and by
            each invariant), the same of BASE, and "HEAD's rate is lower by delta or more". Each says so at 1 / alpha.
        needed: how many more pairs like these would show that HEAD is not worse by delta; None where none would.
        rates: of the runs that kept everything, by version; difference: of these rates.
        invariants: one line each, in order.
        latency_ms, tokens, cost: None where fewer than two pairs have them.
        pass_k: by version.
    """

    conclusion: Conclusion
    headline: str
    tally: Tally
    regression: float
    improvement: float
    not_worse: float
    needed: int | None
    rates: tuple[Gauge, Gauge] | None
    difference: Difference | None
    invariants: tuple[InvariantLine, ...] = ()
    latency_ms: Measure | None = None
    tokens: Measure | None = None
    cost: Measure | None = None
    pass_k: tuple[tuple[PassK, ...], tuple[PassK, ...]] = field(default=((), ()))


def rule(pairs: Sequence[Pair], *, alpha: float, delta: float) -> Ruling:
    """What these pairs say; may be asked after every one of them.

    Args:
        pairs: in the order they came.
        alpha: how likely a false regression may be, and a false "not worse", each 0..1 exclusive.
        delta: how much worse is still acceptable, as a difference of rates, 0..1 exclusive.

    Raises:
        ValueError: alpha or delta is not strictly between 0 and 1.
    """
    tally = Tally.of(each.how for each in pairs)
    regression, lines = _lines(pairs, regression_evidence(tally.lost, tally.won))
    improvement = regression_evidence(tally.won, tally.lost)
    not_worse = sameness_evidence(tally.lost, tally.won, tally.tied, margin=delta)
    needed = pairs_needed(tally.lost, tally.won, tally.tied, margin=delta, alpha=alpha)
    worse = [line for line in lines if line.adjusted <= alpha]
    counts = f"{tally.lost} lost, {tally.won} won, {tally.tied} tied of {tally.judged} pairs"
    conclusion: Conclusion
    if regression >= 1 / alpha and tally.lost > tally.won:
        conclusion, headline = "regression", f"HEAD is worse than BASE: {counts} (e-value {regression:.3g})"
    elif regression >= 1 / alpha:
        names = ", ".join(line.invariant for line in worse or [max(lines, key=lambda line: line.evidence)])
        conclusion, headline = "regression", f"HEAD breaks {names} where BASE kept it; in all {counts}"
    elif improvement >= 1 / alpha:
        conclusion, headline = "no regression", f"HEAD is better than BASE: {counts} (e-value {improvement:.3g})"
    elif not_worse >= 1 / alpha:
        conclusion, headline = "no regression", f"HEAD is not worse than BASE by {delta:g} or more: {counts}"
    else:
        more = "pairs like these would never show it" if needed is None else f"about {needed} more pairs would show it"
        conclusion = "inconclusive"
        headline = f"too few pairs to tell whether HEAD is worse by {delta:g}: {counts}; {more}"
        if not tally.judged:
            headline = "no pair could be judged: no invariant was conclusive on both of its runs"
    return Ruling(
        conclusion, headline, tally, regression, improvement, not_worse, needed, *_rates(pairs), lines,
        _measured(pairs, lambda run: run.latency_ms if run.error is None else None),
        _measured(pairs, lambda run: run.tokens),
        _measured(pairs, lambda run: run.cost),
        (_pass_k(pairs, "base"), _pass_k(pairs, "head")),
    )  # fmt: skip


def _rates(pairs: Sequence[Pair]) -> tuple[tuple[Gauge, Gauge] | None, Difference | None]:
    judged = [each for each in pairs if each.how != "unjudged"]
    if not judged:
        return None, None
    n = len(judged)
    counts = (sum(each.base_passed for each in judged), sum(each.head_passed for each in judged))
    base, head = (Gauge(passed, n, passed / n, *(wilson(passed, n) or (0.0, 1.0))) for passed in counts)
    paired = mean_difference([(float(each.base_passed), float(each.head_passed)) for each in judged])
    if paired is None or paired.low == paired.high:  # no spread to learn from; independent samples have some
        return (base, head), agresti_caffo(counts[0], n, counts[1], n)
    return (base, head), replace(paired, low=max(-1.0, paired.low), high=min(1.0, paired.high))


def _lines(pairs: Sequence[Pair], whole: float) -> tuple[float, tuple[InvariantLine, ...]]:
    """The evidence of a regression, given that of the pairs as a whole; and the invariants, each with its own."""
    found: dict[str, list[tuple[bool, bool]]] = {}
    severity: dict[str, Severity] = {}
    unjudged: Counter[str] = Counter()
    for each in pairs:
        shared = _shared(each.base, each.head)
        for name, (weight, _) in each.base.verdicts.items():
            severity.setdefault(name, weight)
            if name in shared:
                found.setdefault(name, []).append(shared[name])
            elif name in each.head.verdicts:
                unjudged[name] += 1
    lines = []
    for name, kept in found.items():
        lost, won = sum(b and not h for b, h in kept), sum(h and not b for b, h in kept)
        tally, evidence = Tally(lost, won, len(kept) - lost - won, unjudged[name]), regression_evidence(lost, won)
        counts = sum(b for b, _ in kept), sum(h for _, h in kept)
        lines.append(InvariantLine(name, severity[name], tally, *counts, evidence, p=min(1.0, 1 / evidence)))
    if len(lines) < 2:  # one invariant is the whole: the same question, asked once
        return whole, tuple(replace(line, adjusted=line.p) for line in lines)
    _, *adjusted = holm([min(1.0, 1 / whole), *(line.p for line in lines)], [len(lines), *(1 for _ in lines)])
    told = tuple(replace(line, adjusted=p) for line, p in zip(lines, adjusted, strict=True))
    return (whole + _mean([line.evidence for line in lines])) / 2, told


def _measured(pairs: Sequence[Pair], of: Callable[[RunResult], float | None]) -> Measure | None:
    """Over batches where there are some: the runs of one version in one batch share the machine's good and bad moments,
    so that they are not independent of one another."""
    batches: dict[int, list[tuple[float, float]]] = {}
    for each in pairs:
        base, head = of(each.base.run), of(each.head.run)
        if not each.free and not each.replayed and base is not None and head is not None:
            batches.setdefault(each.batch, []).append((float(base), float(head)))
    known = [both for batch in batches.values() for both in batch]
    means = [(_mean([b for b, _ in batch]), _mean([h for _, h in batch])) for batch in batches.values()]
    difference = mean_difference(means if len(means) > 1 else known)
    if difference is None:
        return None
    return Measure(_mean([b for b, _ in known]), _mean([h for _, h in known]), difference, len(known))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _pass_k(pairs: Sequence[Pair], side: Literal["base", "head"]) -> tuple[PassK, ...]:
    tasks: dict[tuple[str, str], list[int]] = {}
    for each in pairs:
        if each.how != "unjudged":
            count = tasks.setdefault((each.key.scenario, each.key.prompt), [0, 0])
            count[0] += each.base_passed if side == "base" else each.head_passed
            count[1] += 1
    return pass_ks((passed, runs) for passed, runs in tasks.values())


@dataclass(frozen=True, slots=True)
class Compared:
    """One of the two versions, for the report.

    Args:
        name: as the user gave it; kind: `config`, `git` or `report`.
        config, agent: the file, and the agent in a few words; commit: of a git ref.
    """

    name: str
    kind: str
    config: str = ""
    agent: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a comparison found out.

    Args:
        base, head: the versions.
        ruling: what the pairs add up to.
        pairs: all that were made, in order.
        alpha, delta: as in `rule`.
        seed: both versions' runs have it.
        started_at: UTC, ISO 8601; duration_ms: wall time.
        stopped: the limit of the budget that was reached; empty if none was.
        interrupted: somebody pressed Ctrl-C.
        notes: things a reader must know.
    """

    base: Compared
    head: Compared
    ruling: Ruling
    pairs: tuple[Pair, ...]
    alpha: float
    delta: float
    seed: int
    started_at: str
    duration_ms: float
    stopped: str = ""
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    @property
    def conclusion(self) -> Conclusion:
        return self.ruling.conclusion

    @property
    def verdict(self) -> Outcome:
        """`fail` for a regression, `pass` for none, else `inconclusive`."""
        said: dict[Conclusion, Outcome] = {"regression": "fail", "no regression": "pass"}
        return said.get(self.conclusion, "inconclusive")

    @property
    def exit_code(self) -> int:
        """130 where it was interrupted; 1 for a regression, 0 for none, 3 where too little is known."""
        return 130 if self.interrupted else {"fail": 1, "pass": 0}.get(self.verdict, 3)
