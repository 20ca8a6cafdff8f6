"""Whether a call failed, and whether an answer admits a failure.

A call failed when its reply says so: no reply, an error status, an MCP error, an error in the body's own words. A fault
that takes a result away (`empty`, `malformed`) is a failure too, although no word of it says so. A lie
(`wrong_value`, `drop_fields`) is not: the agent could not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from flakestorm.tape.model import Exchange
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.mcp.protocol import Mcp
from flakestorm.wire.results import Told

__all__ = ["BREAKS", "ENGLISH", "admission", "call_failed", "result_failed", "sounds_failed"]

BREAKS = frozenset(
    {
        "timeout", "error", "malformed", "empty", "connection_reset", "timeout_after_commit", "session_lost",
        "rate_limit", "overloaded", "server_error", "stream_cut", "garbage", "truncated_response", "content_filter",
    }
)  # fmt: skip
"""Fault modes that take the reply away."""

_LOOKED_AT = 2_000
_ERROR = re.compile(
    r"\s*(?:[\[(*#<\"'!\s]*(?:error|exception|traceback|failed|failure)\b|(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b)",
    re.IGNORECASE,
)
_BAD = {"error", "failed", "failure", "fail"}


def call_failed(exchange: Exchange) -> bool:
    """Whether what the agent saw of this call is a failure."""
    reply = exchange.reply
    if reply.error or reply.end == "broken" or reply.status == 0 or reply.status >= 400:
        return True
    if any(f.mode in BREAKS and f.via is None for f in exchange.faults):
        return True
    body = decode_body(reply.body, reply.headers)
    if exchange.wire == Mcp.name:
        return Mcp().said(body, stream=reply.stream).error is not None
    return sounds_failed(body[: _LOOKED_AT * 10].decode("utf-8", "replace"))


def result_failed(told: Told, *, modes: Iterable[str] = ()) -> bool:
    """Whether a tool's result, as the model was told it, is a failure.

    Args:
        told: the result.
        modes: of the faults that fired on it.
    """
    return told.failed or any(mode in BREAKS for mode in modes) or sounds_failed(told.text)


def sounds_failed(text: str) -> bool:
    """Whether a tool's words are those of a failure: they begin with an error, or are an object that holds one."""
    if _ERROR.match(text[:_LOOKED_AT]):
        return True
    if text.lstrip()[:1] != "{":
        return False
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(said, dict):
        return False
    lower = {str(key).lower(): value for key, value in said.items()}
    return (
        bool(lower.get("error") or lower.get("errors"))
        or lower.get("iserror") is True
        or lower.get("success") is False
        or lower.get("ok") is False
        or str(lower.get("status", "")).lower() in _BAD
    )


# What people say when something did not work. An apology alone admits nothing.
_ADMITS = re.compile(
    r"""
      \b(?:could|can|was|were|am|is|are|been|did|does|do|have|has|had)(?:\ not|n?['’]t)\ (?:\w+\ ){0,2}?
        (?:able|available|accessible|working|work|work(?:ed)?|reach|access|retrieve|find|fetch|get|load|look|check|
           complete|confirm|verify|book|process|connect|respond|responding|responded|determine|finish|perform|make|
           cancel|change|update|modify|proceed|succeed|go\ through|gone\ through|obtain|provide|answer|send|pay|
           charge|reserve|place|create|search)\b
    | \bcannot\ (?:\w+\ ){0,2}?\w+
    | \b(?:unable|failed|fails?|failing|failure|failures|unavailable|unreachable|inaccessible|unsuccessful(?:ly)?|
         errors?|outage|offline|timed\ out|time-?out|malfunction\w*|unresponsive|interrupted|broken|corrupt\w*)\b
    | \b(?:is|are|was|were|seems?|appears?|be|been|went|goes|currently|temporarily)\ (?:\w+\ ){0,2}?down\b
    | \b(?:technical|connection|temporary|system|service|some|an?|this)\ (?:\w+\ )?
        (?:problems?|issues?|difficult\w+|trouble|hiccup|glitch)\b
    | \b(?:try|trying)\ (?:\w+\ )?(?:again|later)\b
    | \bno\ (?:results?|response|answer|reply|data|information|luck)\b
    | \b(?:not|isn['’]t|wasn['’]t)\ (?:yet\ |been\ |currently\ )?(?:booked|completed?|processed|confirmed|possible|
         successful|available|working|responding|found|done|sent|made)\b
    | \bnothing\ (?:has\ been|was|is)\b
    | \bdid(?:\ not|n['’]t)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)

# "without any problems" says the opposite.
_DENIED = re.compile(
    r"\b(?:no|not|without|never|zero|free of|resolved|fixed|despite)(?: an?| any| the| further| more)*$", re.IGNORECASE
)

ENGLISH = re.compile(
    r"\b(?:the|is|are|was|and|to|for|you|your|of|in|i|it|have|has|on|with|not|no|a|an)\b", re.IGNORECASE
)
"""Words hardly any English answer does without; an answer that has none is not judged by English words."""

_SELF_NEGATED = re.compile(
    r"(?i)(?:no|not|nothing|cannot|could|can|was|were|did|is|are|am|isn|wasn|do|does|have|has)\b"
)


def admission(text: str) -> re.Match[str] | None:
    """Where an answer, in English, admits that something did not work; None where it does not."""
    for found in _ADMITS.finditer(text):
        before = text[max(0, found.start() - 30) : found.start()].rstrip()
        if _SELF_NEGATED.match(found[0]) or not _DENIED.search(before):
            return found
    return None
