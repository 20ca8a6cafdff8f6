"""Exports from strangers (OpenTelemetry): they become exchanges, or are refused in one line."""

from __future__ import annotations

from fuzz.targets.importing import imported

__all__ = ["check"]

WORDS = (
    "resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans", "traceId", "spanId", "parentSpanId",
    "name", "startTimeUnixNano", "endTimeUnixNano", "attributes", "key", "value", "stringValue", "intValue",
    "arrayValue", "kvlistValue", "values", "boolValue", "doubleValue", "events", "status", "code", "message",
    "gen_ai.operation.name", "chat", "execute_tool", "gen_ai.request.model", "gen_ai.input.messages",
    "gen_ai.output.messages", "gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
    "gen_ai.usage.input_tokens", "llm.input_messages.0.message.role", "llm.input_messages.0.message.content",
    "traceloop.span.kind", "gen_ai.prompt.0.content", "gen_ai.completion.0.content", "role", "user", "assistant",
    "parts", "type", "tool_call", "content", "exception", "exception.message",
)  # fmt: skip


def check(data: bytes) -> None:
    imported("otel", WORDS, data)
