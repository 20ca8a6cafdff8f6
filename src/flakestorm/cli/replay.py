"""`flakestorm replay run | export | import`."""

from __future__ import annotations

from pathlib import Path

import click

from flakestorm import api
from flakestorm.cli.judge import carry_out
from flakestorm.cli.options import Globals, global_options

__all__ = ["replay"]


@click.group()
@global_options
def replay(options: Globals) -> None:
    """Replay incidents against a contract; export and import them."""


@replay.command()
@global_options
@click.argument("path", metavar="[PATH|DIR]", type=click.Path(path_type=Path), required=False)
def run(options: Globals, path: Path | None) -> int:
    """Replay sessions and judge each by its contract.

    The model is live; the tools that a session lists never are: their n-th call gets the n-th recorded reply. PATH is a
    session file (YAML or JSON), a tape, a folder of them, or the id of a session in the config. Without PATH the
    config's `replays` are run.

    Fails on any failing session.
    """
    return carry_out(options, "replay run", lambda project, told: project.replay(path, told))
