"""What is taken for a tie; how comparisons use it is in tests/e2e/test_free_ties.py."""

import asyncio
from dataclasses import replace
from pathlib import Path

from compare_support import run_result
from flakestorm.api.replays import TIMED, Replays, timed
from flakestorm.config import loads
from flakestorm.config.model import Scenario
from flakestorm.contracts.base import invariants
from flakestorm.engine.compare import Side
from flakestorm.engine.plan import Trial

CONFIG = """
version: "2.0"
agent: {{type: python, endpoint: "m:f"}}
golden_prompts: [hello]
invariants: [{invariant}]
"""


def trial_of(invariant: str) -> tuple:
    config = loads(CONFIG.replace("{{", "{").replace("}}", "}").replace("{invariant}", invariant))
    return config, Trial("r-0001", Scenario(name="calm"), 0, "hello", 1, tuple(config.invariants))


def live_of(config, trial, side) -> list[Trial]:
    class NoRunner:
        baselines: dict[int, str] = {}

    return asyncio.run(Replays(config, Path("x"), lambda _: side).play(NoRunner(), [trial], lambda _: None))


def test_what_has_no_tape_is_run_live(tmp_path) -> None:
    config, trial = trial_of("{type: completes}")
    calm = Side(run_result(), {})
    assert live_of(config, trial, None) == [trial]
    assert live_of(config, trial, calm) == [trial]
    assert live_of(config, trial, replace(calm, run=run_result(tape=str(tmp_path / "none.tape")))) == [trial]
    (tmp_path / "damaged.tape").write_text("no tape\n")
    assert live_of(config, trial, replace(calm, run=run_result(tape=str(tmp_path / "damaged.tape")))) == [trial]


def test_rules_about_time_forbid_it() -> None:
    config, _ = trial_of("{id: quick, type: latency, max_ms: 5}")
    assert timed(config.invariants) == ["quick"]
    assert not timed(trial_of("{type: completes}")[0].invariants)
    assert set(TIMED) <= set(invariants)
