"""`flakestorm demo`: the main job, end to end, on a bundled agent."""

from __future__ import annotations

import os

import click

from flakestorm import api
from flakestorm.cli.judge import how
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import place_for, present, watching

__all__ = ["demo"]


@click.command()
@global_options
def demo(options: Globals) -> int:
    """Run the bundled travel-booking agent, its tools and a scripted model; no key, no network.

    One promise is kept under chaos and one is broken. That is what the demo is for, so it exits 0 when it has run.
    """
    from flakestorm.demo.run import CONFIG, serve

    with serve() as variables:
        os.environ.update(variables)
        project = api.load(CONFIG)
        place = place_for(options, project.config, "demo")
        with watching(options) as listener:
            report = project.contract(how(options, place, listener=listener))
        present(report, place, options)
    return report.exit_code if report.exit_code in (3, 130) else 0
