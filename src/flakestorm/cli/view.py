"""`flakestorm view`: saved reports, their runs and what crossed the boundary, in a browser."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.saved import store_folder
from flakestorm.executors.interruption import ending

__all__ = ["view"]


@click.command()
@global_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on 127.0.0.1 (any free one).")
@click.option("--no-open", is_flag=True, help="Open no browser; print the address only.")
def view(options: Globals, port: int, no_open: bool) -> int:
    """Look at saved reports, runs and tapes in a local web viewer.

    Prints the address, opens it in a browser and serves until Ctrl-C, on 127.0.0.1 only. The address holds a token,
    without which nothing is shown. The viewer reads what is saved beside the config (-c), and loads nothing from
    anywhere else. From its pages a run can be forked and a failure shrunk, one at a time; each page says first what
    it will execute.

    \b
    flakestorm view
    flakestorm view --port 8700 --no-open
    """
    return asyncio.run(_serve(options, port, opening=not no_open))


async def _serve(options: Globals, port: int, *, opening: bool) -> int:
    from flakestorm.viewer.serving import serving

    folder, ended = store_folder(options), ending(signal.SIGINT, signal.SIGTERM)
    async with serving(folder, port) as address:
        click.echo(address)
        sys.stdout.flush()
        if not options.quiet:
            click.echo(f"showing {folder}; Ctrl-C ends it", err=True)
        if opening:
            await asyncio.to_thread(_open, address)
        number = await ended
    return 130 if number == signal.SIGINT else 0


def _open(address: str) -> None:
    """Open the address where there is a desktop; a browser in this terminal would be in the way."""
    import webbrowser

    desktop = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if desktop:
        webbrowser.open(address)
