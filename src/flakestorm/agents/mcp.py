"""The MCP servers of `agent.mcp`, as variables: FLAKESTORM_MCP_<NAME> holds a command line or a URL.

These are the real servers. For agents that are launched, the boundary wraps and re-points them; agents in this process
use them as they are, because their clients are held where they start a server.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flakestorm.agents.environ import in_environ
from flakestorm.config.model import Agent
from flakestorm.errors import ConfigError

__all__ = ["handed", "servers"]

_PREFIX = "FLAKESTORM_MCP_"
_URL = re.compile(r"https?://", re.IGNORECASE)


def servers(agent: Agent, *, folder: Path | None = None) -> dict[str, str]:
    """The variables of an agent's servers.

    Args:
        agent: the `agent` block.
        folder: where command lines are to run, if not where the agent does.

    Raises:
        ConfigError: two names make the same variable, or there is nothing behind one.
    """
    found: dict[str, str] = {}
    for name, server in agent.mcp.items():
        variable = _PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper())
        line = server.strip() if isinstance(server, str) else shlex.join(server)
        if not line:
            raise ConfigError("give the server's command line or its URL", key=f"agent.mcp.{name}")
        if variable in found:
            raise ConfigError(f"another server is handed on as {variable} too; rename one", key=f"agent.mcp.{name}")
        found[variable] = line if folder is None or _URL.match(line) else _there(folder, line)
    return found


@contextmanager
def handed(agent: Agent, folder: Path) -> Iterator[None]:
    """While entered, this process's environment has the variables.

    Args:
        agent: the `agent` block.
        folder: where command lines are to run.
    """
    mine = servers(agent, folder=None if folder == Path.cwd() else folder)
    with in_environ(mine):
        yield


def _there(folder: Path, line: str) -> str:
    return f'/bin/sh -c \'cd "$0" && exec "$@"\' {shlex.quote(str(folder))} {line}'
