"""The words of the format that a plug-in may add to, and how a misspelt one is answered.

These are names only. Whether a built-in word can be used in this version is answered by the registry that implements
it (`faults/base.py`, `contracts/base.py`), when something is built from the configuration.
"""

from __future__ import annotations

import sys
from functools import lru_cache

from flakestorm.core.record import Record
from flakestorm.core.registry import nearest

__all__ = [
    "AGENT_TYPES",
    "CONTEXT_ATTACKS",
    "INVARIANT_TYPES",
    "LLM_MODES",
    "MUTATION_TYPES",
    "MUTATION_WEIGHTS",
    "TOOL_MODES",
    "Vocabulary",
    "added",
]


class Vocabulary(Record, frozen=True):
    """One open set of words.

    Args:
        what: what the words are, for messages ("tool fault mode").
        words: the built-in ones.
        group: the entry-point group in which installed plug-ins add theirs, if they may.
        hints: words that are often written here by mistake, and what to do instead.
    """

    what: str
    words: frozenset[str]
    group: str | None = None
    hints: tuple[tuple[str, str], ...] = ()

    def complaint(self, word: str) -> str | None:
        """What is wrong with this word, or None when it is built in or a plug-in brings it.

        Plug-ins are looked up only for words that are not built in: scanning the installed distributions costs tens
        of milliseconds.
        """
        if word in self.words:
            return None
        others = frozenset() if self.group is None else added(self.group, tuple(sys.path))
        if word in others:
            return None
        known = sorted(self.words | others)
        hint = dict(self.hints).get(word)
        if hint is not None:
            return f"unknown {self.what} {word!r}; {hint}"
        close = nearest(word, known)
        guess = f"did you mean {close!r}? " if close else ""
        return f"unknown {self.what} {word!r}; {guess}known: {', '.join(known)}"


@lru_cache(maxsize=64)
def added(group: str, path: tuple[str, ...]) -> frozenset[str]:
    """The words of installed plug-ins, looked for once: a file may hold a hundred thousand words nobody knows.

    Args:
        group: the entry-point group.
        path: where distributions are looked for (`sys.path`).
    """
    from importlib.metadata import entry_points

    return frozenset(point.name for point in entry_points(group=group))


AGENT_TYPES = Vocabulary("agent type", frozenset({"http", "python", "langchain", "command"}), "flakestorm.agents")

TOOL_MODES = Vocabulary(
    "tool fault mode",
    frozenset(
        {
            "timeout", "error", "malformed", "slow", "malicious_response", "empty", "wrong_value", "drop_fields",
            "connection_reset", "timeout_after_commit", "duplicate", "flap", "session_lost", "tool_poisoning",
        }
    ),
    "flakestorm.faults",
)  # fmt: skip

LLM_MODES = Vocabulary(
    "LLM fault mode",
    frozenset(
        {
            "timeout", "truncated_response", "rate_limit", "empty", "garbage", "response_drift", "overloaded",
            "server_error", "stream_cut", "slow_stream", "bad_tool_call", "refusal", "content_filter",
        }
    ),
    "flakestorm.faults",
    hints=(("error", "for a model that answers with an error use 'server_error', 'overloaded' or 'rate_limit'"),),
)  # fmt: skip

_PROBE = (
    "system_prompt_leak_probe",
    "it is an invariant: write one of type excludes_pattern, with prompts that ask for the system prompt in 'probes'",
)

CONTEXT_ATTACKS = Vocabulary(
    "context attack",
    frozenset({"indirect_injection", "memory_poisoning", "overflow", "conflicting_context", "injection_via_context"}),
    "flakestorm.faults",
    hints=(_PROBE,),
)

INVARIANT_TYPES = Vocabulary(
    "invariant type",
    frozenset(
        {
            "contains", "contains_any", "regex", "excludes_pattern", "valid_json", "json_schema", "output_not_empty",
            "completes", "latency", "similarity", "behavior_unchanged", "excludes_pii", "refusal_check",
            "canary_absent", "tool_called", "tool_not_called", "tool_order", "tool_args", "max_calls",
            "no_duplicate_side_effect", "no_retry_storm", "max_tokens", "max_cost", "grounded",
            "acknowledges_failure", "recovers", "check", "judge",
        }
    ),
    "flakestorm.invariants",
    hints=(_PROBE,),
)  # fmt: skip

MUTATION_WEIGHTS: dict[str, float] = {
    "paraphrase": 1.0,
    "noise": 0.8,
    "tone_shift": 0.9,
    "prompt_injection": 1.5,
    "encoding_attacks": 1.3,
    "context_manipulation": 1.1,
    "length_extremes": 1.2,
    "custom": 1.0,
    "multi_turn_attack": 1.4,
    "advanced_jailbreak": 2.0,
    "semantic_similarity_attack": 1.3,
    "format_poisoning": 1.6,
    "language_mixing": 1.2,
    "token_manipulation": 1.5,
    "temporal_attack": 1.1,
    "http_header_injection": 1.7,
    "payload_size_attack": 1.4,
    "content_type_confusion": 1.5,
    "query_parameter_poisoning": 1.6,
    "request_method_attack": 1.3,
    "protocol_level_attack": 1.8,
    "resource_exhaustion": 1.5,
    "concurrent_request_pattern": 1.4,
    "timeout_manipulation": 1.3,
}
"""Every mutation type and its default weight in the robustness score."""

MUTATION_TYPES = Vocabulary("mutation type", frozenset(MUTATION_WEIGHTS), "flakestorm.mutations")
