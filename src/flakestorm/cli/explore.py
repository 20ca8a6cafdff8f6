"""`flakestorm explore`: search the faults for the smallest ones that break a promise."""

from __future__ import annotations

import click

from flakestorm.cli.judging import carry_out, resume_option
from flakestorm.cli.options import Globals, global_options

__all__ = ["explore"]


@click.command()
@global_options
@click.option("--budget", type=click.IntRange(min=3), metavar="RUNS", help="Make at most so many runs (200).")
@click.option("--modes", metavar="A,B", help="Try these faults only, e.g. error,timeout,rate_limit.")
@click.option(
    "--max-time", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop after that long."
)
@click.option("--prompt", "prompts", type=click.IntRange(min=0), multiple=True, help="Search this golden prompt (all).")
@click.option("--inputs", type=click.IntRange(min=0), default=0, metavar="N", help="Also with N mutated inputs (0).")
@click.option("--reuse-replies", is_flag=True, help="Spare model calls that ask what they asked without faults.")
@resume_option
def explore(
    options: Globals,
    budget: int | None,
    modes: str | None,
    max_time: float | None,
    prompts: tuple[int, ...],
    inputs: int,
    reuse_replies: bool,
    resume: str | None,
) -> int:
    """Search the faults for the smallest ones that break a promise.

    Every call of the agent is broken in every way that suits it, alone and in pairs, many at once where that is safe;
    what fails is reduced to its smallest form. Judged by the top-level invariants and those of the contract.

    \b
    flakestorm explore --budget 100
    flakestorm explore --modes error,timeout --prompt 2
    """
    chosen = [mode.strip() for mode in (modes or "").split(",") if mode.strip()]
    return carry_out(
        options,
        "explore",
        lambda project, how: project.explore(
            how,
            budget=budget,
            modes=chosen,
            max_time_s=max_time,
            prompts=prompts or None,
            inputs=inputs,
            reuse=reuse_replies,
        ),
        resume=resume,
    )
