"""`strategy: adaptive` finds planted input bugs with at most half of the runs that `uniform` takes."""

from collections.abc import Callable, Sequence
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest

from flakestorm.config.model import Invariant
from flakestorm.core.choices import Choices
from flakestorm.core.verdict import failed, passed
from flakestorm.engine.adapting import adapt
from flakestorm.engine.mutating import mutated_plan
from flakestorm.engine.plan import Trial
from flakestorm.mutations.generate import Recipe, made

PROMPTS = ["Book a flight to Oslo on 12 May", "What is the weather in Paris?", "Send the report to Anna",
           "Cancel order 4711"]  # fmt: skip
TYPES = ("paraphrase", "noise", "tone_shift", "prompt_injection", "encoding_attacks", "context_manipulation",
         "length_extremes", "token_manipulation", "format_poisoning", "language_mixing")  # fmt: skip
FILLED = Invariant(type="output_not_empty", id="filled")
Bug = Callable[[str], bool]
BUGS: dict[str, Bug] = {
    "blank input": lambda text: not text.strip(),
    "zero width": lambda text: any(c in text for c in "\u200b\u2060\ufeff"),
    "very long": lambda text: len(text) > 15_000,
    "soft hyphen": lambda text: "\u00ad" in text,
    "order in a document": lambda text: "Attached, " in text,
    "unseen tags": lambda text: any(0xE0000 <= ord(c) <= 0xE007F for c in text),
    "table": lambda text: text.startswith("id,"),
    "right to left": lambda text: any(c in text for c in "\u202e\u2067\u202b"),
}
AGENTS = (
    ("blank input", "zero width", "order in a document"),
    ("very long", "unseen tags", "table"),
    ("soft hyphen", "right to left", "order in a document"),
)


def found_after(texts: Sequence[str], bugs: Sequence[str]) -> int:
    """How many runs it took until every bug had shown."""
    return max(next((at for at, text in enumerate(texts, 1) if BUGS[bug](text)), 10_000) for bug in bugs)


def evenly(seed: int, *, shuffled: bool = False) -> list[str]:
    """What `uniform` sends, in the order of its plan; or in any order, which is as good as chance can be."""
    rows = [made(Recipe(TYPES, 10, seed, {}, {}), prompt)[0] for prompt in PROMPTS]
    texts = [trial.text for trial in mutated_plan(rows, invariants=[FILLED], prompts=PROMPTS).trials]
    if shuffled:
        Choices(seed).stream("order").shuffle(texts)
    return texts


async def adaptively(seed: int, bugs: Sequence[str]) -> list[str]:
    rows = [made(Recipe(TYPES, 15, seed, {}, {}), prompt)[0] for prompt in PROMPTS]
    plan = mutated_plan(rows, invariants=[FILLED], prompts=PROMPTS, budget=len(PROMPTS) * len(TYPES) * 10)
    sent: list[str] = []

    async def run(trials: Sequence[Trial]) -> list[Any]:
        sent.extend(trial.text for trial in trials)
        return [SimpleNamespace(trial=t, verdicts=((FILLED, verdict(t.text, bugs)),)) for t in trials]

    await adapt(plan, seed, (), run)
    return sent


def verdict(text: str, bugs: Sequence[str]) -> Any:
    return failed(f"crash in {text[:9]!r}") if any(BUGS[bug](text) for bug in bugs) else passed("fine")


@pytest.mark.parametrize("bugs", AGENTS)
async def test_planted_bugs_are_found_in_half_the_runs(bugs) -> None:
    seeds = range(9)
    even = median(found_after(evenly(seed), bugs) for seed in seeds)
    chance = median(found_after(evenly(seed, shuffled=True), bugs) for seed in seeds)
    ours = median([found_after(await adaptively(seed, bugs), bugs) for seed in seeds])
    assert ours <= even / 2, f"adaptive {ours}, uniform {even}, in any order {chance}"
    assert ours <= chance, f"adaptive {ours}, uniform {even}, in any order {chance}"


async def test_the_budget_is_spent_and_failures_are_more_frequent() -> None:
    bugs = AGENTS[0]
    sent = await adaptively(1, bugs)
    assert len(sent) == len(PROMPTS) * len(TYPES) * 10
    hits = [sum(any(BUGS[bug](text) for bug in bugs) for text in texts) for texts in (sent, evenly(1))]
    assert hits[0] > hits[1] > 0
