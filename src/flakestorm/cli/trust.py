"""Asking whether what a tape names may be run, and telling when a tape cannot be sealed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from flakestorm.api.trusting import Approve, Wanted

__all__ = ["approval", "tell_unsealed", "trust_option"]

trust_option = click.option(
    "--trust-tape", "trusted", is_flag=True, help="Run what the tape names though it is not known to be yours."
)

_SHOWN = 4000  # what is longer scrolls away, and nobody should say yes to what they have not seen


def approval(*, trusted: bool) -> Approve:
    """Who lets run what nobody vouches for: the option, else whoever sits at the terminal, else nobody."""

    def approve(wanted: Wanted) -> bool:
        return trusted or (_somebody_is_there() and len(str(wanted.named)) <= _SHOWN and _asked(wanted))

    return approve


def tell_unsealed(*, quiet: bool | None) -> None:
    """Say so where the tapes that are recorded here cannot be sealed."""
    from flakestorm.tape.origin import own_key

    own = own_key()
    if own.key is None and not quiet:
        from flakestorm.tape.text import plain

        click.echo(
            f"note: the tape is not sealed as yours, so you will be asked before its command is run again: "
            f"{plain(own.why)}",
            err=True,
        )


def _somebody_is_there() -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return os.isatty(sys.stdin.fileno()) and os.isatty(sys.stderr.fileno())
    return False


def _asked(wanted: Wanted) -> bool:
    for line in _question(wanted):
        click.echo(line, err=True)
    return click.confirm("Run it?", default=False, err=True)


def _question(wanted: Wanted) -> Iterator[str]:
    from flakestorm.agents.environ import PRIVATE
    from flakestorm.tape.text import plain

    named = wanted.named
    yield f"{plain(str(wanted.file))} names what is to be run, and is not known to be yours: {plain(wanted.why)}."
    if named.argv:
        import shlex

        yield f"  command      {plain(shlex.join(named.argv))}"
        yield f"  folder       {plain(str(Path(named.cwd)))}"
    else:
        yield f"  config       {plain(named.config)}"
        yield from _agent_of(named.config)
    yield f"  environment  this one, without {' and '.join(PRIVATE)}; a tape sets no variable"
    yield "What it says was answered is told to the program again, as if the world had said so."


def _agent_of(path: str) -> Iterator[str]:
    """What this config has run, in so far as it can be read; reading runs nothing."""
    from flakestorm.config import load
    from flakestorm.errors import FlakestormError
    from flakestorm.tape.text import plain

    try:
        agent = load(Path(path)).agent
    except (FlakestormError, OSError, ValueError) as error:
        yield f"  agent        cannot be told: {plain(str(error))[:200]}"
        return
    starts = agent.start if isinstance(agent.start, (str, type(None))) else " ".join(agent.start)
    yield f"  agent        {plain(starts or str(agent.endpoint))}"
    if agent.restore:
        yield f"  restore      {plain(agent.restore)}"
    if agent.env:
        yield f"  variables    {plain(', '.join(sorted(agent.env)))}"
