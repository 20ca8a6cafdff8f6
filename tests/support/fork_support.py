"""A world that never says the same twice, for forks: what is in a reply tells which call it answers."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from upstream import Canned, Request, Upstream, anthropic_for, document, openai_for

__all__ = ["Numbers", "changing"]


class Numbers:
    """One after the other, whoever asks."""

    def __init__(self) -> None:
        self._numbers, self._lock = itertools.count(1), threading.Lock()

    def __call__(self) -> int:
        with self._lock:
            return next(self._numbers)


@contextmanager
def changing(numbers: Numbers, says: Callable[[str, str], str]) -> Iterator[Upstream]:
    """Both model providers, which ask for `search` once and then answer, and the search service itself.

    Args:
        numbers: make call ids and results of the search new ones.
        says: what a model answers, by its name and what the search said.
    """

    def city(request: Request) -> str:
        return next(c for c in ("Oslo", "Bergen", "Rome") if c in json.dumps(request.json()["messages"][0]))

    def openai(request: Request) -> Canned:
        asked = request.json()
        told = [turn["content"] for turn in asked["messages"] if turn["role"] == "tool"]
        if told:
            return openai_for(asked)(says(asked["model"], told[0]))
        return openai_for(asked)(tool_calls=[(f"call_{numbers():024}", "search", {"to": city(request)})])

    def anthropic(request: Request) -> Canned:
        asked = request.json()
        if len(asked["messages"]) > 1:
            return anthropic_for(asked)(says(asked["model"], asked["messages"][-1]["content"][0]["content"]))
        return anthropic_for(asked)(tool_calls=[(f"toolu_{numbers():024}", "search", {"to": city(request)})])

    with Upstream() as up:
        up.reply("/v1/chat/completions", openai)
        up.reply("/v1/messages", anthropic)
        up.reply("/search", lambda _: document({"flights": numbers()}))
        yield up
