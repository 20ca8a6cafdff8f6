"""Names of OpenTelemetry's GenAI conventions that are written in spans of reports and read from those of others.

https://opentelemetry.io/docs/specs/semconv/gen-ai/. What only one side knows (an older name, a detail of a report)
stands there.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ARGUMENTS", "EXECUTE_TOOL", "FINISH", "INPUT", "INVOKE_AGENT", "MODEL", "OPERATION", "OUTPUT", "PROVIDER",
    "RESULT", "SERVER", "TOKENS_IN", "TOKENS_OUT", "TOOL", "TOOLS",
]  # fmt: skip

OPERATION: Final = "gen_ai.operation.name"
INVOKE_AGENT: Final = "invoke_agent"
EXECUTE_TOOL: Final = "execute_tool"

PROVIDER: Final = "gen_ai.provider.name"
SERVER: Final = "server.address"
MODEL: Final = "gen_ai.request.model"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
FINISH: Final = "gen_ai.response.finish_reasons"
TOKENS_IN: Final = "gen_ai.usage.input_tokens"
TOKENS_OUT: Final = "gen_ai.usage.output_tokens"

TOOLS: Final = "gen_ai.tool.definitions"
TOOL: Final = "gen_ai.tool.name"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
