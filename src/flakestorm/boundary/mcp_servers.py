"""MCP servers by environment variable: FLAKESTORM_MCP_<NAME> as an agent is to have it.

What the variable says is the real server, a command line or a URL; what the agent gets leads there through the gateway:
the command line wrapped, the URL's origin replaced by a place on the gateway, as with the providers' variables.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from urllib.parse import urlsplit

from flakestorm.boundary.providers import Upstreams
from flakestorm.errors import Misuse

__all__ = ["MCP_PLACE", "PREFIX", "WRAPPER", "wrapped"]

PREFIX = "FLAKESTORM_MCP_"

MCP_PLACE = "mcp-"
"""How the name of a server's place on the gateway begins."""

WRAPPER = Path(__file__).parent / "mcp_stdio.py"
"""The program that wraps a server; run by its path, so that it needs nothing of the agent's world but a Python."""


def wrapped(env: Mapping[str, str], gateway: str) -> tuple[dict[str, str], Upstreams]:
    """The variables to set, and the origins behind the new places on the gateway.

    Args:
        env: the environment that names the real servers.
        gateway: the instance's root on the gateway.

    Raises:
        Misuse: a command line cannot be split into words.
    """
    given: dict[str, str] = {}
    origins: Upstreams = {}
    for variable, value in env.items():
        name, server = variable.removeprefix(PREFIX).lower(), value.strip()
        if name == variable.lower() or not server:
            continue
        parts = urlsplit(server)
        if parts.scheme.lower() in ("http", "https") and parts.netloc:
            userinfo, at, authority = parts.netloc.rpartition("@")
            place = MCP_PLACE + name
            origins[place] = f"{parts.scheme.lower()}://{authority}"
            scheme, _, address = f"{gateway}/p/{place}".partition("://")
            given[variable] = f"{scheme}://{userinfo}{at}{address}{server[len(parts.scheme) + 3 + len(parts.netloc) :]}"
            continue
        try:
            command = shlex.split(server)
        except ValueError as error:
            raise Misuse(f"{variable} is {server!r}, which is no command line and no URL: {error}") from error
        given[variable] = shlex.join((*_told(gateway), "--name", name, "--", *command))
    return given, origins


def _told(gateway: str) -> tuple[str, ...]:
    """The wrapper's command line, with its way to the gateway.

    The way is as good as a key, and everybody on a machine can read the arguments of every program. So it is put in the
    wrapper's environment, where there is a program that does that: it stands in arguments until that one has become the
    wrapper, and no longer.
    """
    program = which("env", path=os.defpath)
    if program is None:
        return (sys.executable, "-I", str(WRAPPER), "--gateway", gateway)
    return (program, f"FLAKESTORM_GATEWAY={gateway}", sys.executable, "-I", str(WRAPPER))
