"""The built-in modes: in which module of this room each lives, and what ARG stands for in its one-line form `MODE:ARG`.

A module is imported when one of its modes is played, so this table is where a command finds out what there is. Modes
that other distributions bring are found by their entry points (`plugins.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CONTEXT", "CONTEXT_RESULT", "CONVERSATION", "LLM", "RESULT", "TOOL", "arguments", "homes"]

Modes = Mapping[str, Mapping[str, str | None]]
"""Module -> mode -> the setting that ARG stands for; None where the mode takes no ARG."""

TOOL: Modes = {
    "timeout": {"timeout": "delay_ms"},
    "tool": {
        "error": "error_code",
        "slow": "delay_ms",
        "malformed": None,
        "malicious_response": "payload",
    },
    "network": {"connection_reset": None, "timeout_after_commit": "delay_ms", "duplicate": None, "flap": "error_code"},
    "lying": {"wrong_value": None, "drop_fields": None, "empty": None},
    "mcp": {"session_lost": None, "tool_poisoning": "payload"},
}
"""What can be done to a tool's call."""

RESULT: Modes = {
    "tool_result": {
        "error": "error_code",
        "timeout": "delay_ms",
        "timeout_after_commit": "delay_ms",
        "connection_reset": None,
        "slow": "delay_ms",
        "malformed": None,
        "empty": None,
        "flap": "error_code",
        "malicious_response": "payload",
    },
    "lying": {"wrong_value": None, "drop_fields": None},
}
"""What can be done to a tool's result on its way to the model."""

LLM: Modes = {
    "timeout": {"timeout": "delay_ms"},
    "llm": {"rate_limit": "retry_after_ms", "overloaded": "retry_after_ms", "server_error": "error_code"},
    "stream": {"stream_cut": "after_events", "slow_stream": "first_token_ms"},
    "speech": {
        "truncated_response": "max_tokens",
        "empty": None,
        "garbage": None,
        "refusal": "message",
        "content_filter": "form",
    },
    "calling": {"bad_tool_call": "form"},
    "drift": {"response_drift": "drift_type"},
}
"""What can be done to a model's reply."""

CONTEXT: Modes = {"context": {"indirect_injection": "payload"}}
"""How hostile text gets into the reply to a tool's call."""

CONTEXT_RESULT: Modes = {"context": {"indirect_injection": "payload"}}
"""How it gets into a tool's result on its way to the model."""

CONVERSATION: Modes = {
    "memory": {"memory_poisoning": "payload", "injection_via_context": "payload"},
    "overflow": {"overflow": "inject_tokens"},
    "conflict": {"conflicting_context": "payload"},
}
"""How it gets into the conversation that the model is told."""


def homes(modes: Modes) -> dict[str, str]:
    """The full name of the module that registers each mode."""
    return {mode: f"{__package__}.{module}" for module, inside in modes.items() for mode in inside}


def arguments(modes: Modes) -> dict[str, str]:
    """The setting that ARG stands for, for the modes that take one."""
    return {mode: setting for inside in modes.values() for mode, setting in inside.items() if setting is not None}
