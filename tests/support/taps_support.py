"""A tap that writes down what it is told."""

from __future__ import annotations

from flakestorm.core.call import Tap

__all__ = ["Noted"]


class Noted(Tap):
    """`seen`: the chunks, then None where the body ended, or the name of what ended it."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def chunk(self, data: bytes) -> None:
        self.seen.append(data)

    def end(self, error: BaseException | None) -> None:
        self.seen.append(None if error is None else type(error).__name__)
