"""Exports from strangers (Langfuse): they become exchanges, or are refused in one line."""

from __future__ import annotations

from fuzz.targets.importing import imported

__all__ = ["check"]

WORDS = (
    "observations", "trace", "id", "traceId", "type", "GENERATION", "SPAN", "TOOL", "EVENT", "name", "startTime",
    "endTime", "input", "output", "model", "usage", "usageDetails", "promptTokens", "input_tokens", "metadata",
    "attributes", "parentObservationId", "level", "ERROR", "statusMessage", "role", "content", "tool_calls",
    "function", "arguments", "messages", "data", "scores", "user", "assistant", "tool", "kwargs", "generations",
    "text",
)  # fmt: skip


def check(data: bytes) -> None:
    imported("langfuse", WORDS, data)
