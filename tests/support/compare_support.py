"""Pairs made by hand, for tests of comparisons."""

from collections.abc import Sequence
from typing import Any

from flakestorm.core.verdict import Outcome
from flakestorm.engine.compare import Compared, Comparison, Key, Pair, Side, pair, rule
from flakestorm.engine.events import CellResult, RunResult

OUTCOME: dict[Any, Outcome] = {True: "pass", False: "fail", None: "inconclusive"}


def run_result(id_: str = "r-0001", *, prompt: int = 0, trial: int = 1, **more: Any) -> RunResult:
    """A run that said hello; `more` replaces any field."""
    fields: dict[str, Any] = {
        "scenario": "calm", "input": "a", "output": "hello", "error": None, "latency_ms": 10.0, "planned": 0,
        "fired": (), "masked": (), "calls": {}, "tape": "", "reproduce": "", **more,
    }  # fmt: skip
    return RunResult(id=id_, prompt=prompt, trial=trial, **fields)


def side_of(kept: Sequence[bool | None], *, trial: int = 1, severity: str = "medium", **run: Any) -> Side:
    """A run on which invariants i0, i1, ... were kept, broken or (None) inconclusive."""
    return Side(
        run_result(f"r-{trial:04}", trial=trial, **run),
        {f"i{at}": (severity, OUTCOME[said]) for at, said in enumerate(kept)},  # type: ignore[misc]
    )


def pair_of(base: Sequence[bool | None], head: Sequence[bool | None], *, trial: int = 1) -> Pair:
    return pair(Key("calm", "a", trial), side_of(base, trial=trial), side_of(head, trial=trial))


def comparison_of(pairs: Sequence[Pair], **more: Any) -> Comparison:
    ruling = rule(pairs, alpha=0.05, delta=0.1)
    base, head = Compared("main", "git", "f.yaml", "http x", "0" * 40), Compared("f.yaml", "config", "f.yaml", "http x")
    return Comparison(base, head, ruling, tuple(pairs), 0.05, 0.1, 7, "2026-01-02T03:04:05Z", 12.0, **more)


def cell_of(verdict: Outcome, *, trial: int = 1, prompt: int = 0, invariant: str = "i") -> CellResult:
    return CellResult("calm", invariant, "medium", prompt, trial, verdict, "", f"r-{trial:04}")
