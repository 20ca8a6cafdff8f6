"""`flakestorm demo`: the main job, end to end, on a bundled agent."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click

from flakestorm import api
from flakestorm.cli.judge import how
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import place_for, present, results_only, watching
from flakestorm.cli.saved import FOLDER, both, saving

__all__ = ["demo"]


@click.command()
@global_options
@click.option("--prompt", type=click.IntRange(min=0), help="Run this one of its prompts alone, from 0.")
@click.option("--inject", "injections", multiple=True, metavar="SITE=FAULT", help="With exactly these faults.")
def demo(options: Globals, prompt: int | None, injections: tuple[str, ...]) -> int:
    """Run the bundled travel-booking agent, its tools and a scripted model; no key, no network.

    One promise is kept under chaos and one is broken. That is what the demo is for, so it exits 0 when it has run; with
    --prompt or --inject it exits as `flakestorm run` does.
    """
    from flakestorm.demo.run import CONFIG, serve

    alone = prompt is not None or bool(injections)
    with serve() as variables:
        os.environ.update(variables)
        project = replace(api.load(CONFIG), again=("flakestorm", "demo"))
        place = place_for(options, project.config, "demo")
        with results_only(), watching(options) as shown, saving(Path.cwd() / FOLDER) as save:
            told = how(options, place, listener=both(shown, save))
            report = project.inject(prompt or 0, injections, told) if alone else project.contract(told)
        present(report, place, options, save)
    return report.exit_code if alone or report.exit_code in (3, 130) else 0
