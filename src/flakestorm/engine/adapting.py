"""Carrying out a plan with more trials than runs to spend: after every few, the next are chosen by what was seen."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence

from flakestorm.core.choices import Choices
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Plan, Trial
from flakestorm.mutations.strategy import BATCH, Arm, Bandit, arm_of

__all__ = ["NOTE", "adapt"]

NOTE = (
    "strategy adaptive: runs were spent where failures are likely, so there are more of them than in an even spread; "
    "compare scores of the same strategy only"
)


async def adapt(
    plan: Plan, seed: int, done: Iterable[Judged], run: Callable[[Sequence[Trial]], Awaitable[Sequence[Judged]]]
) -> None:
    """Spend the plan's budget.

    What is no mutation is run in any case. The same seed and the same outcomes lead to the same runs.

    Args:
        plan: with a budget.
        seed: every draw follows from it.
        done: runs of it that have been made already; they are part of the budget.
        run: carries out some trials.
    """
    bandit = Bandit(Choices(seed, "adaptive"))
    pool: dict[Arm, deque[Trial]] = defaultdict(deque)
    for trial in sorted(plan.trials, key=lambda trial: (trial.number, trial.prompt)):  # prompts by turns
        if trial.mutation is not None:
            pool[arm_of(trial.mutation)].append(trial)
    plain = [trial for trial in plan.trials if trial.mutation is None]
    made = {judged.trial.run: judged for judged in done}
    await run([trial for trial in plain if trial.run not in made])
    left = plan.budget or 0
    while left > 0:
        arms = bandit.choose({arm: len(trials) for arm, trials in pool.items()}, min(BATCH, left))
        if not arms:
            return
        batch = [pool[arm].popleft() for arm in arms]
        left -= len(batch)
        fresh = await run([trial for trial in batch if trial.run not in made])
        made |= {judged.trial.run: judged for judged in fresh}
        for arm, trial in zip(arms, batch, strict=True):
            judged = made.get(trial.run)
            verdicts = () if judged is None else judged.verdicts
            bandit.learn(arm, [(str(i.id), v.reason) for i, v in verdicts if v.outcome == "fail"])
