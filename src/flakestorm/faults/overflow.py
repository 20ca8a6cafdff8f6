"""Overflow: a context that is longer than the agent was built for.

What fills real context windows is what came before: a long history, a pasted file, a page of results. So the filler
stands in front of the newest message, comes in once, and stays in every later request of that conversation, as the rest
of a history does. It is benign: plain sentences that ask for nothing. Whoever looks at the cost should know that a live
model reads them all again with every request.
"""

from __future__ import annotations

from flakestorm.config.model import ContextAttack
from flakestorm.core.choices import Choices
from flakestorm.faults.base import Entry, Heard, conversation_attacks
from flakestorm.faults.places import place_of
from flakestorm.wire.tokens import count_tokens, cut_tokens

__all__ = ["INJECT_TOKENS", "filler", "overflow"]

INJECT_TOKENS = 8_000
"""How long the filler is when the config does not say otherwise, in tokens as `wire/tokens.py` counts them."""

_WHO = ("The team", "A visitor", "The night shift", "The archive", "One of the readers", "The workshop", "A neighbour")
_DID = ("noted", "described", "mentioned", "recorded", "remembered", "summed up", "drew")
_WHAT = ("the weather", "the length of the corridor", "a row of old maps", "the colour of the doors", "a quiet walk")
_WHEN = ("in the spring", "on a Tuesday", "before lunch", "during the fair", "after the rain", "late in the year")


@conversation_attacks.add("overflow")
def overflow(spec: ContextAttack, choices: Choices, _heard: Heard) -> Entry | None:
    """`inject_tokens` (8000) tokens of filler stand in front of the newest message, or of the system prompt."""
    tokens = INJECT_TOKENS if spec.inject_tokens is None else spec.inject_tokens
    if not tokens:
        return None
    text = filler(tokens, choices)
    return Entry(f"{tokens} tokens of filler", text, spec.strategy or "prepend", place_of(spec).at == "system")


def filler(tokens: int, choices: Choices) -> str:
    """Plain sentences of exactly this many tokens, seeded, numbered so that none is like another."""
    draw = choices.stream("filler")
    sentences: list[str] = []
    count = 0
    while count < tokens:
        words = (draw.choice(_WHO), draw.choice(_DID), draw.choice(_WHAT), draw.choice(_WHEN))
        sentence = f"{len(sentences) + 1}. {' '.join(words)}."
        sentences.append(sentence)
        count += count_tokens(sentence)
    return cut_tokens(" ".join(sentences), tokens)
