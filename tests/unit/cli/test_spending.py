import pytest

from flakestorm.cli.spending import Spending, estimate
from flakestorm.engine.budget import Limits
from flakestorm.engine.events import Report
from flakestorm.store.sqlite import Store
from unit_cli import run


def planned(agent: str = "http x") -> Report:
    return Report("contract run", "inconclusive", 0, "10 runs would be made", 1, "", 0.0, {}, (), (),
                  agent=agent, planned=10)  # fmt: skip


def saved(folder, *runs: dict[str, object]) -> None:
    with Store(folder, write=True) as store:
        rows = [{"id": f"r-{n}", **row} for n, row in enumerate(runs)]
        store.save(
            {"command": "contract run", "started_at": "2026-01-02T03:04:05Z", "verdict": "pass", "exit_code": 0,
             "scores": {}, "agent": "http x", "runs": rows, "cells": []}
        )  # fmt: skip


def test_no_budget_unless_one_is_given() -> None:
    assert Spending().options() == {"budget": None, "early": None, "dry_run": False}
    budget = Spending(Limits(runs=1)).options()["budget"]
    assert budget.claim()
    assert not budget.claim()


def test_what_earlier_runs_cost_is_what_is_expected(tmp_path) -> None:
    saved(tmp_path, {"tokens": 100, "cost": 0.01}, {"tokens": 300, "cost": 0.03}, {"tokens": None})
    said = "10 runs would be made\ncost: about 2,000 tokens (2 earlier runs), about 0.2000 US dollars (2 earlier runs)"
    assert estimate(planned(), tmp_path) == said
    assert "cost: unknown" in estimate(planned("another"), tmp_path)


def test_what_has_no_price_is_unknown(tmp_path) -> None:
    saved(tmp_path, {"tokens": 100, "cost": None})
    assert estimate(planned(), tmp_path).endswith("(1 earlier runs); cost: unknown, for the model has no list price")
    assert "cost: unknown" in estimate(planned(), tmp_path / "nowhere")


@pytest.mark.parametrize(
    "words", [("--max-runs", "0"), ("--max-cost", "-1"), ("--max-time", "0"), ("--max-tokens", "x")]
)
def test_a_budget_that_makes_no_sense_is_2(capsys, words) -> None:
    assert run("contract", "run", *words) == 2
    assert words[0] in capsys.readouterr().err
