"""Which of two faults is the smaller one: a total order, the same everywhere, with the smallest explanation first.

As a shrinker wants it (shortlex): fewer faults first; of as many, the weaker mode, fewer firings, the earlier site, the
shorter delay, and in the end the one-line form itself, so that only equal faults are equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flakestorm.faults.line import Spec
from flakestorm.faults.planned import Planned

__all__ = ["WEAKEST_FIRST", "schedule_size", "size"]

WEAKEST_FIRST = (
    ("slow", "slow_stream"),
    ("duplicate",),
    ("rate_limit", "overloaded"),
    ("flap", "error", "server_error"),
    ("timeout",),
    ("session_lost", "connection_reset", "stream_cut"),
    ("timeout_after_commit",),
    ("refusal", "content_filter", "truncated_response", "empty", "drop_fields"),
    ("malformed", "garbage", "bad_tool_call", "response_drift"),
    ("wrong_value",),
    ("overflow", "conflicting_context"),
    ("malicious_response", "tool_poisoning"),
    ("memory_poisoning", "injection_via_context", "indirect_injection"),
)
"""Modes by what they do to an agent: later, later again, refused, broken, unanswered, cut off, cut short, unreadable,
lied to, attacked. A mode that is not here is stronger than all that are."""

_RANK = {mode: rank for rank, modes in enumerate(WEAKEST_FIRST) for mode in modes}

_Key = tuple[Any, ...]


def size(planned: Planned) -> _Key:
    """A key to sort faults by, the smallest first."""
    spec, site = planned.spec, planned.expected
    return (
        _RANK.get(planned.mode, len(WEAKEST_FIRST)),
        _times(spec),
        (site.occurrence, site.kind, site.name),
        _delay_ms(spec),
        len(planned.line),
        planned.line,
    )


def schedule_size(schedule: Iterable[Planned]) -> _Key:
    """A key to sort schedules by, the smallest first; in it, the order of the faults does not count."""
    sizes = sorted(map(size, schedule))
    return (len(sizes), *sizes)


def _times(spec: Spec) -> float:
    """How often it fires at most."""
    limits = [float("inf") if spec.times is None else spec.times]
    if spec.site is not None:
        limits.append(1)
    if spec.calls is not None:
        limits.append(len(spec.calls))
    return min(limits)


def _delay_ms(spec: Spec) -> int:
    """How much time it takes, as far as its settings say."""
    return sum(
        getattr(spec, name, None) or 0 for name in ("delay_ms", "first_token_ms", "per_chunk_ms", "retry_after_ms")
    )
