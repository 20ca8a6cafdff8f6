"""Whether equal runs are equal: an agent that keeps state between runs makes them depend on one another.

Two runs of the same prompt without chaos are equal in everything flakestorm decides. Where they differ all the same,
and nothing sets the agent back before each run, a verdict may be that of an earlier run's doing.
"""

from __future__ import annotations

from collections.abc import Iterable

from flakestorm.engine.judged import Judged

__all__ = ["unsteady_prompts"]


def unsteady_prompts(judged: Iterable[Judged]) -> tuple[tuple[int, ...], list[str]]:
    """The prompts whose runs without chaos differ in what the agent said or did, and one note about all of them.

    Args:
        judged: runs of an agent that nothing sets back, in plan order. One that could not be reached says nothing, nor
            does one whose calls the world refused for their rate.
    """
    first: dict[tuple[object, ...], Judged] = {}
    differing: dict[int, tuple[str, str]] = {}
    for run in judged:
        if run.trial.scenario.chaos or run.run.refusals or (run.run.error or "").startswith("unreachable"):
            continue
        other = first.setdefault(_asked(run), run)
        if _did(other) != _did(run):
            differing.setdefault(run.trial.prompt, (other.run.id, run.run.id))
    if not differing:
        return (), []
    prompt, (one, two) = next(iter(differing.items()))
    more = f" (and so do those of {len(differing) - 1} more prompts)" if len(differing) > 1 else ""
    note = (
        f"two equal runs differ: {one} and {two}, both of prompt {prompt} without chaos{more}. The agent keeps state "
        "between runs, or answers at random; if it keeps state, give agent.reset_endpoint or agent.reset_function, or "
        "the verdicts of the cells that are marked unsteady depend on the runs before them"
    )
    return tuple(differing), [note]


def _asked(judged: Judged) -> tuple[object, ...]:
    """What two equal runs were asked."""
    mutation = judged.run.mutation
    return judged.trial.prompt, judged.run.input, None if mutation is None else (mutation.type, mutation.number)


def _did(judged: Judged) -> tuple[object, ...]:
    """What two equal runs have in common."""
    run = judged.run
    return run.output, run.error, tuple(sorted(run.calls.items()))
