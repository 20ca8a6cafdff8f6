"""`flakestorm contract run | validate | score`."""

from __future__ import annotations

import click

from flakestorm import api
from flakestorm.cli.judging import carry_out, how, min_score_option, resume_option
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import place_for, present, results_only
from flakestorm.cli.saved import saving, store_folder
from flakestorm.cli.spending import Spending, spending_options

__all__ = ["contract"]


@click.group()
@global_options
def contract(options: Globals) -> None:
    """Judge the contract: named invariants in every scenario of the chaos matrix."""


@contract.command()
@global_options
@min_score_option("the contract score that decides", full=100)
@resume_option
@spending_options
def run(options: Globals, min_score: float | None, resume: str | None, spending: Spending) -> int:
    """Run the matrix and judge every cell.

    Fails on a failing critical cell, and on any failing cell unless --min-score is given, which then decides the rest.
    """
    return carry_out(options, "contract run", api.Project.contract, min_score, resume, spending=spending)


@contract.command()
@global_options
def validate(options: Globals) -> int:
    """Check the contract without running anything."""
    from flakestorm.reports.text import counted

    project = api.load(options.config_path)
    plan = project.check(api.Options(trials=options.trials))
    axes = ((plan.invariants, "invariant"), (plan.scenarios, "scenario"), (plan.prompts, "prompt"))
    product = " x ".join(counted(len(axis), noun) for axis, noun in axes)
    product += f" x {counted(plan.repeats, 'trial')}" if plan.repeats > 1 else ""
    said = f"{options.config_path}: ok; {product} = {counted(len(plan.trials), 'agent run')}"
    if plan.generate is not None:
        said += f"; {counted(len(plan.baseline), 'run')} without chaos will show which scenarios {plan.generate} adds"
    click.echo(said)
    return 0


@contract.command()
@global_options
@min_score_option("the contract score that decides", full=100)
def score(options: Globals, min_score: float | None) -> int:
    """Run the matrix and print nothing but the score.

    With --format json, the report as `contract run` gives it; -o writes it to a file instead.
    """
    project = api.load(options.config_path)
    place = place_for(options, project.config, "contract score")
    with results_only(), saving(store_folder(options, project.config)) as save:
        report = project.contract(how(options, place, min_score=min_score, listener=save, early=False))
    if options.output is not None or options.format == "json":
        return present(report, place, options)
    found = report.scores["contract"].value
    click.echo("no data" if found is None or report.interrupted else f"{found:g}")
    return report.exit_code
