"""What an agent in this process is told of the turns before."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from flakestorm.core.choices import entropy_token

__all__ = ["History", "with_history"]


class History(list[dict[str, str]]):
    """The messages of a conversation so far, each with `role` (user or assistant) and `content`.

    `thread` is a name for the conversation that no other one has.
    """

    def __init__(self, messages: list[dict[str, str]] | None = None, thread: str = "") -> None:
        super().__init__(messages or [])
        self.thread = thread or f"flakestorm-{entropy_token()}"

    def add(self, asked: str, answered: str) -> None:
        """Note a turn."""
        self += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]

    def copied(self) -> History:
        """Messages that an agent may change as it likes."""
        return History([dict(message) for message in self], self.thread)


def with_history(function: Callable[..., Any], history: History | None) -> Callable[..., Any]:
    """The function with the turns before, where it has a parameter `history`.

    Outside a conversation it is left out, unless the function cannot do without.
    """
    try:
        wanted = inspect.signature(function).parameters.get("history")
    except (TypeError, ValueError):  # some built-in callables tell no parameters
        return function
    if wanted is None or (history is None and wanted.default is not wanted.empty):
        return function
    return partial(function, history=(History() if history is None else history).copied())
