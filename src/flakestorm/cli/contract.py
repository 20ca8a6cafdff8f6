"""`flakestorm contract run | validate | score`."""

from __future__ import annotations

from pathlib import Path

import click

from flakestorm import api
from flakestorm.cli.judge import carry_out, how, min_score_option, resume_option
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import place_for, results_only
from flakestorm.reports.text import counted

__all__ = ["contract"]


@click.group()
@global_options
def contract(options: Globals) -> None:
    """Judge the contract: named invariants in every scenario of the chaos matrix."""


@contract.command()
@global_options
@min_score_option("the contract score that decides", full=100)
@resume_option
def run(options: Globals, min_score: float | None, resume: Path | None) -> int:
    """Run the matrix and judge every cell.

    Fails on a failing critical cell, and on any failing cell unless --min-score is given, which then decides the rest.
    """
    return carry_out(options, "contract run", api.Project.contract, min_score, resume)


@contract.command()
@global_options
def validate(options: Globals) -> int:
    """Check the contract without running anything."""
    project = api.load(options.config_path)
    plan = project.check()
    axes = ((plan.invariants, "invariant"), (plan.scenarios, "scenario"), (plan.prompts, "prompt"))
    product = " x ".join(counted(len(axis), noun) for axis, noun in axes)
    click.echo(f"{options.config_path}: ok; {product} = {counted(len(plan.trials), 'agent run')}")
    return 0


@contract.command()
@global_options
def score(options: Globals) -> int:
    """Run the matrix and print nothing but the score."""
    project = api.load(options.config_path)
    place = place_for(options, project.config, "contract score")
    with results_only():
        report = project.contract(how(options, place))
    found = report.scores["contract"].value
    click.echo("no data" if found is None or report.interrupted else f"{found:g}")
    return report.exit_code
