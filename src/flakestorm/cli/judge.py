"""Commands that judge the agent: `run` and `chaos`; `judging` has what they share with others."""

from __future__ import annotations

import click

from flakestorm import api
from flakestorm.cli.judging import carry_out, min_score_option, resume_option
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.spending import Spending, spending_options
from flakestorm.core.conversation import prompt_of
from flakestorm.engine.events import Report
from flakestorm.errors import Misuse

__all__ = ["chaos", "run"]


@click.command()
@global_options
@click.option("--chaos", "chaotic", is_flag=True, help="Mutations under the config's chaos, or --chaos-profile.")
@click.option("--chaos-only", is_flag=True, help="Golden prompts under chaos, unmutated.")
@click.option("--chaos-profile", metavar="NAME", help="The chaos: this profile (a name or a file).")
@click.option("--prompt", type=click.IntRange(min=0), help="Run this golden prompt alone, from 0, unmutated.")
@click.option(
    "--input", "texts", multiple=True, metavar="TEXT", help="Run this input alone, e.g. a probe; several are turns."
)
@click.option("--mutate", "mutation", metavar="TYPE#N", help="In this mutation, as a report names it.")
@click.option("--inject", "injections", multiple=True, metavar="SITE=FAULT", help="With exactly these faults.")
@click.option("--tape", type=click.Path(), metavar="TAPE", help="A tape stands in for the world until a fault fires.")
@click.option("--ci", is_flag=True, help="For build logs: no progress, no colour.")
@click.option("--verify-only", is_flag=True, help="Same as `flakestorm verify`.")
@min_score_option("the least robustness, or chaos resilience", full=1)
@resume_option
@spending_options
def run(
    options: Globals,
    chaotic: bool,
    chaos_only: bool,
    chaos_profile: str | None,
    prompt: int | None,
    texts: tuple[str, ...],
    mutation: str | None,
    injections: tuple[str, ...],
    tape: str | None,
    ci: bool,
    verify_only: bool,
    min_score: float | None,
    resume: str | None,
    spending: Spending,
) -> int:
    """Run the mutations of the golden prompts and judge the agent by the invariants.

    \b
    flakestorm run
    flakestorm run --chaos
    flakestorm run --chaos-only
    flakestorm run --chaos-profile api_outage
    flakestorm run --prompt 2 --inject 'tool/search#1=error:503'
    flakestorm run --tape a.tape --inject 'tool/search#1=error:503'
    """
    if ci:
        options = options._replace(no_color=True)
    if verify_only:
        from flakestorm.cli.verify import check_reach

        return check_reach(options)
    if injections or mutation or prompt is not None or texts or tape is not None:
        if prompt is not None and texts:
            raise Misuse("--prompt and --input both say what to send; give one of them")
        chosen = prompt_of(texts) if texts else prompt
        if (texts or tape is not None) and mutation is not None:
            raise Misuse("--mutate is of a golden prompt; give --prompt instead of --input or --tape")
        if chaotic or chaos_only or chaos_profile:
            raise Misuse(
                "--inject, --prompt, --input and --tape make one run with exactly the faults given; "
                "leave out --chaos-..."
            )
        if resume is not None:
            raise Misuse("one run has nothing to resume; leave out --resume")
        return carry_out(
            options,
            "run",
            lambda project, opts: project.inject(chosen, injections, opts, mutation=mutation, tape=tape),
            min_score,
            progress=not ci,
            spending=spending,
        )
    if chaotic and chaos_only:
        raise Misuse("--chaos is mutations under chaos and --chaos-only is golden prompts; give one of them")
    golden = chaos_only or (chaos_profile is not None and not chaotic)

    def judge(project: api.Project, opts: api.Options) -> Report:
        if golden:
            return project.chaos(chaos_profile, opts)
        return project.mutations(opts, chaos=chaotic, profile=chaos_profile)

    return carry_out(
        options,
        "run",
        judge,
        min_score,
        resume,
        progress=not ci,
        spending=spending,
    )


@click.command()
@global_options
@click.option("--profile", metavar="NAME", help="A profile's name or file; the config's 'chaos' block if absent.")
@min_score_option("the least chaos resilience", full=1)
@resume_option
@spending_options
def chaos(
    options: Globals, profile: str | None, min_score: float | None, resume: str | None, spending: Spending
) -> int:
    """Run the golden prompts under chaos."""
    return carry_out(
        options, "chaos", lambda project, opts: project.chaos(profile, opts), min_score, resume, spending=spending
    )
