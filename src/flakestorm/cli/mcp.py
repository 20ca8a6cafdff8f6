"""`flakestorm mcp -- COMMAND`: the wrapper of stdio MCP servers."""

from __future__ import annotations

import click

from flakestorm.cli.options import Globals, global_options

__all__ = ["mcp"]


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="[--gateway URL] [--name NAME]",
)
@global_options
@click.option("--gateway", default="", help="Where the run's gateway is; by default, what started this knows it.")
@click.option("--name", default="", help="What the server is called in reports; by default, as its command.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND [ARG]...")
def mcp(_: Globals, gateway: str, name: str, command: tuple[str, ...]) -> None:
    """Run an MCP server so that its calls cross the boundary of the run its agent belongs to.

    Put it before the command in the agent's list of servers. Outside a run, the server runs as if this were not there.
    """
    from flakestorm.boundary import mcp_stdio

    mcp_stdio.main(["--gateway", gateway, "--name", name, "--", *command])
