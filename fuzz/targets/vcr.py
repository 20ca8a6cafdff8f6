"""Exports from strangers (VCR cassettes): they become exchanges, or are refused in one line."""

from __future__ import annotations

from fuzz.targets.importing import imported

__all__ = ["check"]

WORDS = (
    "interactions", "http_interactions", "request", "response", "method", "GET", "POST", "uri", "url", "body",
    "string", "base64_string", "encoding", "headers", "status", "code", "message", "version", "recorded_at",
    "content-type", "application/json", "text/event-stream", "content-encoding", "gzip",
    "https://api.openai.com/v1/chat/completions", "!!binary", "parsed_body", "direction", "text", "protocol", "http",
)  # fmt: skip


def check(data: bytes) -> None:
    imported("vcr", WORDS, data)
