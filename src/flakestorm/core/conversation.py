"""A conversation: what the agent is asked in several turns.

It is a text, too: its turns, each on a new line after its number in brackets. So whatever shows, names or compares an
input needs to know nothing of turns, and only what asks the agent, changes an input or judges one answer of several
looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from flakestorm.core.record import Record

__all__ = ["NOT_ASKED", "Conversation", "Turn", "prompt_of", "turns_of"]

NOT_ASKED = "not asked, because an earlier turn failed"


class Conversation(str):
    """The turns of a conversation, as the text `[1] FIRST`, a new line, `[2] SECOND`, and so on.

    Args:
        turns: what the agent is asked, in order; at least one.
        numbers: of each turn, which one of the golden prompt it is, from 1; 0 for one that a mutation put in between.
            Default: those of a golden prompt.
    """

    turns: tuple[str, ...]
    numbers: tuple[int, ...]

    def __new__(cls, turns: Sequence[str], numbers: Sequence[int] | None = None) -> Self:
        made = super().__new__(cls, "\n".join(f"[{at}] {turn}" for at, turn in enumerate(turns, 1)))
        made.turns = tuple(turns)
        made.numbers = tuple(range(1, len(turns) + 1)) if numbers is None else tuple(numbers)
        return made

    def __getnewargs__(self) -> tuple[tuple[str, ...], tuple[int, ...]]:  # type: ignore[override]
        return self.turns, self.numbers

    def changed(self, at: int, change: Callable[[str], str]) -> Conversation:
        """The same with one turn changed."""
        turns = [change(turn) if n == at else turn for n, turn in enumerate(self.turns)]
        return self if tuple(turns) == self.turns else Conversation(turns, self.numbers)

    def each(self, change: Callable[[str], str]) -> Conversation:
        """The same with every turn changed."""
        return Conversation([change(turn) for turn in self.turns], self.numbers)

    def with_turn(self, at: int, *turns: str) -> Conversation:
        """The same with more turns before the one at this index."""
        return Conversation(
            (*self.turns[:at], *turns, *self.turns[at:]), (*self.numbers[:at], *(0 for _ in turns), *self.numbers[at:])
        )


class Turn(Record, frozen=True):
    """One turn of a run.

    Args:
        input: what the agent was asked; output: its answer, empty where there is an error.
        error: why there is no answer, as `KIND: MESSAGE`; `NOT_ASKED` after a turn that failed.
        latency_ms: from input to answer.
        calls: how many calls crossed the boundary meanwhile.
        number: which turn of the golden prompt it is, from 1; 0 for one that a mutation put in between.
    """

    input: str
    output: str
    error: str | None
    latency_ms: float
    calls: int
    number: int


def prompt_of(written: str | Sequence[str]) -> str:
    """What is asked, from a text or a list of turns; a list of one turn is that text."""
    if isinstance(written, str):
        return written
    return written[0] if len(written) == 1 else Conversation(written)


def turns_of(prompt: str) -> tuple[str, ...]:
    """What the agent is asked, one after the other."""
    return prompt.turns if isinstance(prompt, Conversation) else (prompt,)
