"""`flakestorm gateway`: a boundary on its own, for agents that somebody else starts."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.errors import ConfigError, Misuse
from flakestorm.executors.interruption import ending
from flakestorm.reports.text import counted

if TYPE_CHECKING:
    from flakestorm.boundary.standing import Standing
    from flakestorm.faults.schedule import Schedule

__all__ = ["gateway"]


@click.command()
@global_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on 127.0.0.1 (any free one).")
@click.option("--chaos", "configured", is_flag=True, help="Play the faults of the config's 'chaos' block.")
@click.option("--chaos-profile", "profile", metavar="NAME", help="Play this profile (a name or a file).")
@click.option("--inject", "injections", multiple=True, metavar="SITE=FAULT", help="Play exactly these faults.")
@click.option("--all", "everything", is_flag=True, help="Print every variable launched agents get, proxies included.")
def gateway(
    options: Globals,
    port: int,
    configured: bool,
    profile: str | None,
    injections: tuple[str, ...],
    everything: bool,
) -> int:
    """Run a boundary on its own, for agents that somebody else starts.

    Prints one NAME=URL line per provider variable, closes its output, and serves until Ctrl-C. What crosses is recorded
    on the tape that -o names; a copy of what that file held is kept in .flakestorm/tapes. While a command such as
    `contract run` judges an `http` agent without `start`, the agent's calls belong to that command's runs.

    \b
    flakestorm gateway --port 8401 > gateway.env &
    export $(flakestorm gateway --port 8401 &)
    """
    from flakestorm.api import loop_factory

    order = _order(options, configured, profile, injections)
    if options.output is not None:
        from flakestorm.tape.shelf import make_room

        make_room(options.output, partial(click.echo, err=True))
    with asyncio.Runner(loop_factory=loop_factory()) as loop:
        return loop.run(_serve(options, order, port, everything=everything))


@dataclass(frozen=True, slots=True)
class _Order:
    """What the gateway is to do, beside listening."""

    tools: list[tuple[str, str]]
    schedule: Schedule
    seed: int
    redact: list[str]


def _order(options: Globals, configured: bool, profile: str | None, injections: tuple[str, ...]) -> _Order:
    """Read the config, where there is one, and the faults.

    Raises:
        ConfigError: the config is wrong, or has no chaos to play.
        Misuse: the faults are given in two ways, or cannot be played.
    """
    from flakestorm.api import Project
    from flakestorm.api.placed import telling
    from flakestorm.config import load, tools_of
    from flakestorm.core.choices import entropy_seed
    from flakestorm.faults import profiles
    from flakestorm.faults.schedule import Schedule

    if sum((configured, profile is not None, bool(injections))) > 1:
        raise Misuse("--chaos, --chaos-profile and --inject each say which faults to play; give one of them")
    config = load(options.config_path) if options.config is not None or options.config_path.exists() else None
    if configured and (config is None or config.chaos is None):
        raise ConfigError(
            "there is no chaos to play: add a 'chaos' block to the config, or name a profile with --chaos-profile",
            file=options.config_path,
            key=None if config is None else "chaos",
        )
    chaos = profiles.load(profile) if profile is not None else config.chaos if config and configured else None
    if chaos is None:
        schedule = Schedule.injecting(injections)
    elif config is None:
        schedule = Schedule.of(chaos)
    else:
        with telling(Project(config, options.config_path)):
            schedule = Schedule.of(chaos)
    seeds = (options.seed, None if config is None else config.advanced.seed, entropy_seed())
    return _Order(
        [] if config is None else tools_of(config, *([chaos] if chaos else [])),
        schedule,
        next(seed for seed in seeds if seed is not None),
        [] if config is None else config.boundary.redact,
    )


async def _serve(options: Globals, order: _Order, port: int, *, everything: bool) -> int:
    from flakestorm.boundary.standing import Standing
    from flakestorm.tape.shelf import STORE, in_store

    place = in_store(f"gateway-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.tape")
    standing = Standing(
        tape=options.output or place,
        store=STORE,
        environ=os.environ,
        tools=order.tools,
        schedule=order.schedule,
        seed=order.seed,
        redact=order.redact,
    )
    # Before anything is promised: a signal that comes early is obeyed as well.
    ended = ending(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    await standing.start(port)
    try:
        _print(standing.environment if everything else standing.variables)
        if not options.quiet:
            _tell(standing, order)
        number = await ended
    finally:
        await standing.close()
    if not options.quiet:
        fired = f", {counted(standing.fired, 'fault')} fired" if order.schedule.planned else ""
        click.echo(f"stopped; {counted(standing.exchanges, 'call')} on {standing.tape}{fired}", err=True)
    return 130 if number == signal.SIGINT else 0


def _print(variables: Mapping[str, str]) -> None:
    """One NAME=URL line each, and the end of the output: whoever reads it to the end, as `$(...)` does, goes on."""
    for name, value in variables.items():
        click.echo(f"{name}={value}")
    sys.stdout.flush()
    with suppress(OSError, ValueError):
        out = sys.stdout.fileno()
        if not os.isatty(out):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, out)
            os.close(nowhere)


def _tell(standing: Standing, order: _Order) -> None:
    """What somebody who watches should know."""
    root = f"http://127.0.0.1:{standing.port}"
    click.echo(f"gateway on {root}, recording on {standing.tape}; Ctrl-C ends it", err=True)
    for fault in order.schedule.describe():
        click.echo(f"  plays {fault} (seed {order.seed})", err=True)
    for name, value in os.environ.items():
        if name in standing.variables and "/r/" in value and value.startswith("http://127.0.0.1:"):
            click.echo(
                f"warning: {name} led to a gateway already, so calls go through both; unset it to lead them to the "
                "provider",
                err=True,
            )
    if standing.lends:
        click.echo(f"warning: other commands cannot use this gateway: {standing.lends}", err=True)
    click.echo(
        "start the agent with these variables. Tools over plain HTTP: "
        f"{shlex.quote('HTTP_PROXY=' + standing.environment['HTTP_PROXY'])} (--all prints every variable)",
        err=True,
    )
