from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine_support import FakeAgent, FakeLine
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.clock import Clock
from flakestorm.core.conversation import NOT_ASKED, Conversation
from flakestorm.engine.talking import Asking
from flakestorm.errors import Misuse

TALK = Conversation(["one", "two", "three"]).with_turn(1, "between")


class Talker(FakeAgent):
    """Says what it was asked; `late` turns take longer than they may, `broken` ones fail."""

    def __init__(self, *broken: str, took_ms: float = 1.0) -> None:
        super().__init__()
        self.broken, self.took_ms, self.changes = broken, took_ms, list[object]()

    @asynccontextmanager
    async def conversation(self, _: Any) -> AsyncIterator[Callable[..., Any]]:
        self.asked.append("begin")

        async def say(prompt: str, change: object = None) -> Answer:
            self.asked.append(prompt)
            self.changes.append(change)
            error = AgentError("http", "HTTP 500") if prompt in self.broken else None
            return Answer("" if error else prompt.upper(), error, self.took_ms)

        yield say
        self.asked.append("end")


def asking(agent: Any, limit_ms: int | None = None) -> Asking:
    clock = Clock(lambda: 0.0)
    counts = iter(range(100))
    return Asking(agent, FakeLine("r-0001", lambda call: call, clock), clock, lambda: next(counts), limit_ms)


async def test_turns_are_asked_in_order_in_one_conversation() -> None:
    agent = Talker()
    asked = await asking(agent).ask(TALK, None)
    assert agent.asked == ["begin", "one", "between", "two", "three", "end"]
    assert (asked.answer.output, asked.total_ms) == ("THREE", 4.0)
    assert [(turn.output, turn.number, turn.calls) for turn in asked.turns] == [
        ("ONE", 1, 1), ("BETWEEN", 0, 1), ("TWO", 2, 1), ("THREE", 3, 1)
    ]  # fmt: skip


async def test_a_failing_turn_is_the_last_that_is_asked() -> None:
    agent = Talker("two")
    asked = await asking(agent).ask(TALK, None)
    assert agent.asked[-2:] == ["two", "end"]
    assert str(asked.answer.error) == "http: turn 3 of 4: HTTP 500"
    assert [turn.error for turn in asked.turns] == [None, None, "http: HTTP 500", NOT_ASKED]


async def test_a_change_of_the_request_is_of_the_last_one() -> None:
    agent = Talker()
    change = lambda request: request  # noqa: E731
    await asking(agent).ask(TALK, change)
    assert agent.changes == [None, None, None, change]


async def test_each_turn_has_the_whole_time() -> None:
    asked = await asking(Talker(took_ms=60.0), limit_ms=100).ask(TALK, None)
    assert asked.answer.error is None
    late = await asking(Talker(took_ms=160.0), limit_ms=100).ask(TALK, None)
    assert str(late.answer.error) == "timeout: turn 1 of 4: no answer within 100 ms"


async def test_an_agent_that_cannot_be_talked_with_is_misuse() -> None:
    with pytest.raises(Misuse, match="list of turns"):
        await asking(FakeAgent()).ask(TALK, None)
