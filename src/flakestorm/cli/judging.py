"""What commands that judge the agent have in common: their options, and how one is carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from flakestorm import api
from flakestorm.cli.forms import ahead
from flakestorm.cli.options import Globals
from flakestorm.cli.output import Place, place_for, present, results_only, watching
from flakestorm.cli.saved import both, report_named, saving, store_folder
from flakestorm.cli.spending import Spending, estimate
from flakestorm.engine.events import Report

__all__ = ["Judge", "carry_out", "how", "min_score_option", "resume_option"]

F = TypeVar("F", bound=Callable[..., Any])


def min_score_option(meaning: str, *, full: int) -> Callable[[F], F]:
    """`--min-score`, with what it means for this command and the score's full mark."""
    return click.option("--min-score", type=click.FloatRange(min=0, max=full), help=f"Gate: {meaning}, 0 to {full}.")


def resume_option(command: F) -> F:
    """`--resume FILE|RUN`: go on after an interruption."""
    return click.option(
        "--resume",
        metavar="FILE|RUN",
        help="Go on from an interrupted command: its JSON report, or its id.",
    )(command)


Judge = Callable[[api.Project, api.Options], Report]
"""A method of the project that judges."""


def carry_out(
    options: Globals,
    command: str,
    judge: Judge,
    min_score: float | None = None,
    resume: str | None = None,
    *,
    progress: bool = True,
    spending: Spending | None = None,
) -> int:
    """Load the config, judge, present; gives the exit code.

    Args:
        options: the global options.
        command: its name, for the report's folder.
        judge: what to do.
        min_score, resume: the command's own options.
        progress: whether somebody may be watching.
        spending: what may be spent.
    """
    project = api.load(options.config_path)
    spending = spending or Spending()
    if spending.dry_run:
        with results_only():
            report = judge(project, api.Options(seed=options.seed, trials=options.trials, dry_run=True))
        click.echo(estimate(report, store_folder(options, project.config)))
        return 0
    place = place_for(options, project.config, command)
    with saving(store_folder(options, project.config)) as save:
        with results_only(), watching(options, progress=progress) as shown:
            earlier = None if resume is None else report_named(resume, options)
            told = how(
                options,
                place,
                listener=both(both(shown, save), ahead(place.form)),
                min_score=min_score,
                resume=earlier,
                **spending.options(),
            )
            report = judge(project, told)
        return present(report, place, options, save)


def how(options: Globals, place: Place, **more: Any) -> api.Options:
    """The global options as the API takes them."""
    return api.Options(
        seed=options.seed,
        trials=options.trials,
        concurrency=options.concurrency,
        tapes=place.tapes,
        ray=options.ray,
        **more,
    )
