"""Scores and the gate: what a command's cells add up to, and its exit code.

Exit codes: 1 when the agent failed the gate; else 3 when an applicable invariant has no conclusive run in some
scenario, or nothing was judged at all; else 0. Inconclusive runs next to conclusive ones spoil nothing: a probabilistic
fault need not fire every time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from flakestorm.config.model import Severity
from flakestorm.contracts.cells import Cell, CellRate, rates
from flakestorm.core.record import Record
from flakestorm.core.verdict import Outcome, Score
from flakestorm.stats.intervals import Rate, Weighed, in_places, weighted_rate

__all__ = [
    "SEVERITY_WEIGHTS",
    "Ruling",
    "contract_gate",
    "contract_score",
    "replay_gate",
    "replay_score",
    "run_score",
    "score_gate",
]

SEVERITY_WEIGHTS: Mapping[Severity, int] = {"critical": 3, "high": 2, "medium": 1, "low": 1}


class Ruling(Record, frozen=True):
    """What a gate decided.

    Args:
        exit_code: 0, 1 or 3; verdict: the same in words.
        headline: one sentence that says why.
        failing: cells below their `min_pass_rate`, most severe first. They need not have decided the gate.
        unjudged: (invariant, scenario) pairs without a conclusive run.
    """

    exit_code: Literal[0, 1, 3]
    verdict: Outcome
    headline: str
    failing: tuple[CellRate, ...]
    unjudged: tuple[tuple[str, str], ...]


def contract_score(cells: Iterable[Cell]) -> Score:
    """Contract resilience: sum(cell pass rate x weight) / sum(weight) x 100 over conclusive cells, rounded to 2.

    The counts are of judged cells, one per run. The interval takes the run as what is independent, since all
    invariants of a scenario are judged on the same runs.
    """
    cells = list(cells)
    conclusive = Counter((c.scenario, c.invariant, c.prompt) for c in cells if c.verdict.conclusive)
    rate = weighted_rate(
        Weighed(
            c.verdict.outcome == "pass",
            SEVERITY_WEIGHTS[c.severity] / conclusive[c.scenario, c.invariant, c.prompt],
            c.run,
        )
        for c in cells
        if c.verdict.conclusive
    )
    passed = sum(c.verdict.outcome == "pass" for c in cells)
    judged = conclusive.total()
    return _numbers(rate, 100, 2, passed, judged, len(cells) - judged, critical_failed=_critical_failed(cells))


def run_score(cells: Iterable[Cell], *, weights: Mapping[tuple[str, int, int], float] | None = None) -> Score:
    """Robustness and chaos resilience, 0..1: sum of passed weights / sum of weights of conclusive tests, to 4 places.

    A test is a run. It fails when any invariant fails on it, passes when it has conclusive verdicts and all of them
    are passes, and is inconclusive otherwise.

    Args:
        cells: the judged cells.
        weights: of runs by `Cell.run`, above 0; 1 where not given.
    """
    cells = list(cells)
    runs: dict[tuple[str, int, int], set[Outcome]] = {}
    for cell in cells:
        runs.setdefault(cell.run, set()).add(cell.verdict.outcome)
    judged = {run: "fail" not in said for run, said in runs.items() if said != {"inconclusive"}}
    rate = weighted_rate(Weighed(ok, (weights or {}).get(run, 1.0), run) for run, ok in judged.items())
    passed, inconclusive = sum(judged.values()), len(runs) - len(judged)
    return _numbers(rate, 1, 4, passed, len(judged), inconclusive, critical_failed=_critical_failed(cells))


def replay_score(cells: Iterable[Cell]) -> Score:
    """The replay score: passed / conclusive sessions, 0..1 to 4 places. A session is a scenario.

    It fails when a cell of it fails (`min_pass_rate`), passes when it has conclusive cells and none of them fails, and
    is inconclusive otherwise.
    """
    cells = list(cells)
    sessions = _sessions(cells)
    judged = {name: verdict == "pass" for name, verdict in sessions.items() if verdict != "inconclusive"}
    rate = weighted_rate(Weighed(ok, 1.0, (name, 0, 0)) for name, ok in judged.items())
    missing = len(sessions) - len(judged)
    critical = _critical_failed(cells)
    return _numbers(rate, 1, 4, sum(judged.values()), len(judged), missing, critical_failed=critical)


def replay_gate(cells: Iterable[Cell]) -> Ruling:
    """The gate of `replay run`: any failing session fails it, whatever the severity of the rule that was broken."""
    cells = list(cells)
    ruling = _rule(cells, replay_score(cells), None)
    if ruling.exit_code == 0:
        count = len(_sessions(cells))
        return replace(ruling, headline=f"the gate was met: {count} session{'' if count == 1 else 's'} passed")
    return ruling


def _sessions(cells: Iterable[Cell]) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for rate in rates(cells):
        verdict: Outcome = "fail" if rate.failing else "pass" if rate.conclusive else "inconclusive"
        order = ("inconclusive", "pass", "fail")
        found[rate.scenario] = max(found.get(rate.scenario, "inconclusive"), verdict, key=order.index)
    return found


def _numbers(
    rate: Rate | None,
    scale: int,
    places: int,
    passed: int,
    conclusive: int,
    inconclusive: int,
    *,
    critical_failed: bool,
) -> Score:
    value, low, high = (None, None, None) if rate is None else (rate.value, rate.low, rate.high)

    def on_scale(x: float | None) -> float | None:
        return None if x is None else round(x * scale, places)

    shown = None if value is None else in_places(value * scale, places, full=scale)
    return Score(shown, on_scale(low), on_scale(high), passed, conclusive, inconclusive, critical_failed)


def _critical_failed(cells: Iterable[Cell]) -> bool:
    critical = [c for c in cells if c.severity == "critical"]
    if not any(c.verdict.outcome == "fail" for c in critical):  # a cell without a failed trial does not fail
        return False
    return any(r.failing for r in rates(critical))


def contract_gate(cells: Iterable[Cell], *, min_score: float | None = None) -> Ruling:
    """The gate of `contract run`: a failing critical cell fails it, and so does any failing cell.

    Args:
        cells: everything that was judged.
        min_score: 0..100; where given, the contract score decides about cells that are not critical.
    """
    cells = list(cells)
    return _rule(cells, contract_score(cells), min_score)


def score_gate(cells: Iterable[Cell], score: Score, *, min_score: float = 0.0) -> Ruling:
    """The gate of `run` and `chaos`: a failing critical cell fails it, and so does a score below `min_score`.

    Args:
        cells: everything that was judged.
        score: of these cells; min_score: on its scale.
    """
    return _rule(list(cells), score, min_score)


def _rule(cells: Sequence[Cell], score: Score, min_score: float | None) -> Ruling:
    by_cell = rates(cells)
    failing = tuple(sorted((r for r in by_cell if r.failing), key=lambda r: -SEVERITY_WEIGHTS[r.severity]))
    judged = {(r.invariant, r.scenario) for r in by_cell if r.conclusive}
    unjudged = tuple(
        dict.fromkeys((r.invariant, r.scenario) for r in by_cell if (r.invariant, r.scenario) not in judged)
    )

    def ruling(exit_code: Literal[0, 1, 3], headline: str) -> Ruling:
        verdict: Outcome = {0: "pass", 1: "fail", 3: "inconclusive"}[exit_code]  # type: ignore[assignment]
        return Ruling(exit_code, verdict, headline, failing, unjudged)

    if failing and (min_score is None or failing[0].severity == "critical"):
        more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
        return ruling(1, f"a promise was broken: {_in_words(failing[0])}{more}")
    if min_score is not None and score.value is not None and score.value < min_score:
        return ruling(1, f"the score {score.value:g} is below the {min_score:g} asked for")
    if not cells:
        return ruling(3, "nothing was judged: no invariant applied to any run")
    if unjudged:
        reasons = {(r.invariant, r.scenario): r.reason for r in reversed(by_cell)}
        invariant, scenario = unjudged[0]
        more = f" (and {len(unjudged) - 1} more)" if len(unjudged) > 1 else ""
        return ruling(3, f"{invariant} could not be judged in scenario {scenario}: {reasons[unjudged[0]]}{more}")
    if min_score and score.value is None:
        return ruling(
            3, f"there is no score to hold against the {min_score:g} asked for: nothing that counts was judged"
        )
    tolerated = f", {_count(len(failing))} failed and the score allows it" if failing else ""
    return ruling(
        0, f"the gate was met: {_count(sum(not r.failing for r in by_cell if r.conclusive))} passed{tolerated}"
    )


def _count(cells: int) -> str:
    return f"{cells} cell{'' if cells == 1 else 's'}"


def _in_words(cell: CellRate) -> str:
    runs = f", {cell.passed} of {cell.conclusive} runs passed" if cell.conclusive > 1 else ""
    return f"{cell.invariant} ({cell.severity}) in scenario {cell.scenario}, prompt {cell.prompt}{runs}: {cell.reason}"
