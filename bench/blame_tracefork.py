"""tracefork's own ranking of steps, told what happens in the same worlds; run by its own environment's Python.

Its engine, its test and its correction are its own; what stands in for an agent says whether a fork flips the outcome.
Reads `[[curve, seed], ...]` on standard input and prints, for each, the steps it holds responsible (from 1), its first
choice, and how many model calls the forks would make.
"""

from __future__ import annotations

import json
import random
import sys
from types import SimpleNamespace
from typing import Any

from tracefork import blame


def ranked(curve: list[float], seed: int, k: int) -> dict[str, Any]:
    draw, steps = random.Random(seed), len(curve) - 1

    def trial(_: object, step: int, *__: object) -> tuple[blame.TrialOutcome, bool]:
        failed = draw.random() < curve[step]  # what was before the step is pinned
        return (blame.TrialOutcome.NO_FLIP if failed else blame.TrialOutcome.FLIP), False

    tape = SimpleNamespace(exchanges=[(b"", b"")] * steps)
    blame.BlameEngine._run_trial = staticmethod(trial)
    blame.BudgetGovernor.estimate = staticmethod(lambda *_, **__: SimpleNamespace(est_usd=0.0, n_forks=steps * k))
    blame.BudgetGovernor.confinement_risk = staticmethod(lambda *_, **__: None)
    blame._outcome_text = lambda _: ""
    report = blame.BlameEngine.rank(
        tape, None, SimpleNamespace(grade=lambda _: False), perturb_factory=lambda _: (b"", None), k=k
    )
    top = report.top()
    return {
        "responsible": [step + 1 for step in report.responsible_set],
        "first": None if top is None else top.step_index + 1,
        "calls": k * steps * (steps - 1) // 2,
    }


if __name__ == "__main__":
    print(json.dumps([ranked(curve, seed, 10) for curve, seed in json.load(sys.stdin)]))
