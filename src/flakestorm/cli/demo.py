"""`flakestorm demo`: the main job, end to end, on a bundled agent."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click

from flakestorm import api
from flakestorm.cli.judging import how
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import place_for, present, results_only, watching
from flakestorm.cli.saved import FOLDER, both, saving
from flakestorm.errors import Misuse

__all__ = ["demo"]


@click.command()
@global_options
@click.option("--prompt", type=click.IntRange(min=0), help="Run this one of its prompts alone, from 0.")
@click.option("--inject", "injections", multiple=True, metavar="SITE=FAULT", help="With exactly these faults.")
@click.option("--replay", is_flag=True, help="Replay its incident: what once went wrong, with the tools as they were.")
@click.option("--fixed", is_flag=True, help="Run the agent with its bug fixed.")
def demo(options: Globals, prompt: int | None, injections: tuple[str, ...], replay: bool, fixed: bool) -> int:
    """Run the bundled travel-booking agent, its tools and a scripted model; no key, no network.

    One promise is kept under chaos and one is broken. That is what the demo is for, so it exits 0 when it has run; with
    --prompt, --inject or --replay it exits as `flakestorm run` and `flakestorm replay run` do.
    """
    from flakestorm.demo.run import AGENT, CONFIG, FIXED, INCIDENT, serve

    alone = prompt is not None or bool(injections)
    if replay and alone:
        raise Misuse("--replay plays the incident alone; leave out --prompt and --inject")
    with serve(agent=FIXED if fixed else AGENT) as variables:
        os.environ.update(variables)
        project = replace(api.load(CONFIG), again=("flakestorm", "demo"))
        place = place_for(options, project.config, "demo")
        with results_only(), watching(options) as shown, saving(Path.cwd() / FOLDER) as save:
            told = how(options, place, listener=both(shown, save))
            if replay:
                report = project.replay(INCIDENT, told)
            else:
                report = project.inject(prompt or 0, injections, told) if alone else project.contract(told)
        present(report, place, options, save)
    return report.exit_code if alone or replay or report.exit_code in (3, 130) else 0
