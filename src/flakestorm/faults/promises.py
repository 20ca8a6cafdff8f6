"""What the MCP servers of a run have promised: the output schemas of their tools, as `tools/list` told the agent.

A fault that answers in a tool's place must keep the form that was promised, or the agent's client refuses the answer
before the agent has seen it.
"""

from __future__ import annotations

from typing import Any

from flakestorm.core.call import PULL, Call, Chunks, Reply
from flakestorm.wire.encoding import decoded
from flakestorm.wire.mcp.protocol import Mcp
from flakestorm.wire.mcp.reply import output_schemas

__all__ = ["Promises"]

_MAX_BYTES = 16 * 2**20  # a longer list of tools is passed on and not looked at


class Promises:
    """The output schemas of one run. A tool of the same name on two servers has the schema that was told last."""

    def __init__(self) -> None:
        self._schemas: dict[str, dict[str, Any] | None] = {}

    def of(self, tool: str) -> dict[str, Any] | None:
        """The tool's output schema; None where it promised none, or was not listed in this run."""
        return self._schemas.get(tool)

    def noted(self, call: Call, reply: Reply) -> Reply:
        """The reply; what it lists is noted as it passes."""
        if call.wire != Mcp.name or call.name != "tools/list" or (plain := decoded(reply)) is None:
            return reply
        return plain.pipe(self._watch)

    def _watch(self) -> Chunks:
        parts, size = [], 0
        try:
            while (chunk := (yield PULL)) is not None:
                size += len(chunk)
                if size <= _MAX_BYTES:
                    parts.append(chunk)
                yield chunk
        finally:  # also where the client reads no further than the answer
            if size <= _MAX_BYTES:
                self._schemas.update(output_schemas(b"".join(parts)))
