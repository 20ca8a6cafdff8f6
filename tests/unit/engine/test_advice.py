import asyncio
from dataclasses import replace

import pytest

from engine_support import FakeAgent, runner, scenario
from flakestorm.config.model import Invariant
from flakestorm.engine.advice import Advice
from flakestorm.engine.plan import make_plan
from flakestorm.errors import ModelFailed


class Adviser:
    """A judge that gives these replies in turn; the last one again and again."""

    def __init__(self, *replies: str | Exception) -> None:
        self.replies, self.asked = list(replies), []

    async def ask(self, prompt: str, *, system: str = "", temperature: float | None = None) -> str:
        self.asked.append((system, prompt, temperature))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self) -> None:
        pass


JUDGED = Invariant(type="judge", id="polite", rubric="The answer is polite.")
FINE = '{"verdict": "pass", "reason": "fine"}'


@pytest.mark.parametrize(
    ("replies", "outcomes"),
    [
        ((FINE,), ["pass", "pass"]),
        ((FINE, '{"verdict": "fail", "reason": "rude"}', FINE), ["inconclusive", "pass"]),
        (("I like it",), ["inconclusive", "inconclusive"]),
        ((ModelFailed("status 429"),), ["inconclusive", "inconclusive"]),
    ],
)
def test_a_judge_is_asked_twice_on_the_first_trial_and_once_on_others(tmp_path, replies, outcomes) -> None:
    adviser = Adviser(*replies)
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[JUDGED], prompts=["a"], trials=2)
    judged = _judged_by(adviser, plan, tmp_path)
    assert [verdict.outcome for each in judged for _, verdict in each.verdicts] == outcomes
    assert [temperature for _, _, temperature in adviser.asked] == [0.0] * 3
    assert "The answer is polite." in adviser.asked[0][1]


def test_nobody_is_asked_about_a_run_that_cannot_be_judged(tmp_path) -> None:
    adviser = Adviser(FINE)
    down = Invariant(type="judge", id="polite", rubric="The answer is polite.", when="tool_faults_active")
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[down], prompts=["a"])
    assert [each.verdicts for each in _judged_by(adviser, plan, tmp_path)] == [()]
    assert adviser.asked == []


def _judged_by(adviser: Adviser, plan, folder):
    done = []
    asyncio.run(replace(runner(folder, FakeAgent()), advice=Advice(adviser)).carry_out(plan.trials, done.append))
    return done
