"""Configurations, profiles, contracts and sessions from strangers: they load, or are refused with a `ConfigError`."""

from __future__ import annotations

import json

from flakestorm.config.faults import Chaos
from flakestorm.config.load import loads, reads
from flakestorm.config.model import Contract
from flakestorm.config.replays import ReplaySession
from flakestorm.errors import ConfigError
from fuzz.material import Bytes

__all__ = ["check"]

WORDS = (
    "version", "2.0", "1.0", "agent", "endpoint", "http://127.0.0.1:1/", "type", "http", "python", "command", "start",
    "env", "headers", "query_params", "request_template", "response_path", "ready", "timeout", "mcp", "tools", "model",
    "provider", "openai", "none", "api_key", "${HOME}", "mutations", "count", "types", "noise", "weights",
    "custom_templates", "{prompt}", "golden_prompts", "invariants", "id", "contains", "value", "values", "regex",
    "pattern", "(a+)+$", "excludes_pattern", "patterns", "json_schema", "schema", "$ref", "severity", "critical",
    "when", "always", "negate", "chaos", "tool_faults", "tool", "mode", "error", "error_code", "delay_ms",
    "probability", "after_calls", "calls", "site", "match_url", "llm_faults", "truncated_response", "max_tokens",
    "context_attacks", "indirect_injection", "payloads", "contract", "name", "chaos_matrix", "trials",
    "min_pass_rate", "generate", "toolmaze", "replays", "sessions", "file", "tool_responses", "response", "scoring",
    "mutation", "replay", "output", "format", "json", "path", "advanced", "concurrency", "retries", "seed",
    "certificate", "boundary", "redact", "match", "renamed", "allow_live", "budget", "max_calls", "limit", "args",
    "probes", "expected", "threshold", "latency", "max_ms", "strategy",
)  # fmt: skip
_BASE = '{"version": "2.0", "agent": {"endpoint": "http://127.0.0.1:1/"}, "golden_prompts": ["x"], %s}'


_OTHERS = (Chaos, Contract, ReplaySession)


def check(data: bytes) -> None:
    source = Bytes(data)
    way = source.below(5)
    if way == 0:
        text = source.rest().decode("utf-8", "replace")
    elif way in (1, 4):
        text = json.dumps(source.value(WORDS))
    else:
        key = source.word(WORDS)
        text = _BASE % f"{json.dumps(key)}: {json.dumps(source.value(WORDS))}"
    try:
        if way == 4:
            model = _OTHERS[source.below(len(_OTHERS))]
            session = model is ReplaySession
            reads(text, model, variables={"HOME": "/root"}, folder="/nonexistent", literal=session)
            return
        loads(text, file="flakestorm.yaml", variables={"HOME": "/root"}, folder="/nonexistent")
    except ConfigError:
        pass
