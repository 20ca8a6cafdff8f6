"""Counting tokens without anybody's vocabulary.

Each model has its own tokenizer, some of them secret. For "cut the answer after N tokens" an approximation is enough,
if it is the same everywhere and never longer than asked: a token here is up to four ASCII letters, digits or
underscores, or one other character, either with at most one space before it; or a run of white space. Longer words
cost more tokens than with a provider's tokenizer, so a cut at N comes a little earlier than the provider's own would.

The rule looks at no character ahead. So a prefix's tokens are a prefix of the tokens, and a text that arrives in
pieces is cut at the same place as one that arrives whole.
"""

from __future__ import annotations

import re

__all__ = ["Limit", "TokenMeter", "count_tokens", "cut_tokens"]

_TOKEN = re.compile(r"\s?\w{1,4}|\s?[^\w\s]|\s+", re.ASCII)


class TokenMeter:
    """Counts tokens as text arrives, up to a limit.

    Args:
        limit: how many tokens may pass; None for no limit.

    `count` is how many tokens have passed.
    """

    __slots__ = ("_open", "count", "limit")

    def __init__(self, limit: int | None = None) -> None:
        self.limit, self.count = limit, 0
        self._open = ""  # the token that more text may still lengthen

    @property
    def full(self) -> bool:
        """Whether no further token may begin."""
        return self.limit is not None and self.count >= self.limit

    def take(self, text: str) -> str:
        """As much of the text as fits, counted; the whole text when it does."""
        opened, last = len(self._open), self._open
        for token in _TOKEN.finditer(self._open + text):
            if token.start() or not opened:  # else it is the one that is open, and has been counted
                if self.full:
                    self._open = last
                    return text[: token.start() - opened]
                self.count += 1
            last = token[0]
        self._open = last[-2:] if last.isspace() else last  # a run of white space is one token however long
        return text

    def part(self) -> None:
        """What comes next is another part of the answer and begins a token of its own."""
        self._open = ""


class Limit:
    """Counts the answer up to its limit.

    Args:
        tokens: how many it may have; None for no limit.

    `cut` is whether anything of it may not be said.
    """

    def __init__(self, tokens: int | None) -> None:
        self.meter, self.cut = TokenMeter(tokens), False

    def begin(self) -> bool:
        """Whether another part of the answer may begin."""
        self.cut = self.cut or self.meter.full
        return not self.cut

    def take(self, text: str) -> str:
        """As much of the text as may be said."""
        taken = self.meter.take(text)
        self.cut = self.cut or len(taken) < len(text)
        return taken


def count_tokens(text: str) -> int:
    """How many tokens a text has, by the rule of this module."""
    return sum(1 for _ in _TOKEN.finditer(text))


def cut_tokens(text: str, limit: int) -> str:
    """The longest prefix of at most `limit` tokens that does not split one."""
    return TokenMeter(limit).take(text)
