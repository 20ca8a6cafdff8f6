"""The `mcp` package: stdio servers that it starts are wrapped, so that their calls are seen.

The wrapper is run by the agent's own Python; it needs nothing but the standard library. A server that is wrapped
already (it came by FLAKESTORM_MCP_<NAME>, or the agent was told to) is left as it is.
"""

from __future__ import annotations

import functools
import os
import sys

from .gate import Gate

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["apply"]

_START = "_create_platform_compatible_process"


def apply(module: Any, gate: Gate) -> None:
    start = getattr(module, _START)
    boundary = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    wrapper = os.path.join(boundary, "mcp_stdio.py")  # noqa: PTH118 - pathlib is not imported for the agent's sake

    @functools.wraps(start)
    async def started(command: str, args: Any, env: Any = None, *rest: Any, **named: Any) -> Any:
        words = [command, *args]
        if not any(word == wrapper for word in words) and words[:2] != ["flakestorm", "mcp"]:
            # Not in its arguments, which everybody on this machine can read: who has it may use the gateway.
            env = {**(os.environ if env is None else env), "FLAKESTORM_GATEWAY": gate.root}
            command, args = sys.executable, ["-I", wrapper, "--", *words]
        return await start(command, args, env, *rest, **named)

    setattr(module, _START, started)
