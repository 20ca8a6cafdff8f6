"""How a trial's input reaches the agent: a text in one go, a conversation turn by turn.

The answer to a conversation is that to its last turn. A turn without an answer ends it: what would come next was meant
for somebody who had answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.clock import Clock
from flakestorm.core.conversation import NOT_ASKED, Conversation, Turn
from flakestorm.core.record import Record
from flakestorm.engine.ports import Agent, Line, RequestAgent, TalkingAgent
from flakestorm.errors import Misuse

if TYPE_CHECKING:  # most commands mutate nothing
    from flakestorm.mutations.outgoing import Outgoing

__all__ = ["Asked", "Asking"]

Change: TypeAlias = Callable[["Outgoing"], "Outgoing"]


class Asked(Record, frozen=True):
    """What came of it.

    Args:
        answer: the answer, or that to the last turn that was asked.
        turns: of a conversation, all its turns.
        total_ms: how long the agent took for all of them.
    """

    answer: Answer
    turns: tuple[Turn, ...]
    total_ms: float


class Asking(Record, frozen=True):
    """Asks an agent on one line.

    Args:
        agent: whom.
        line, clock: the run's; count: gives how many calls were recorded so far.
        limit_ms: how long one answer may take, skipped time included.
    """

    agent: Agent
    line: Line
    clock: Clock
    count: Callable[[], int]
    limit_ms: int | None

    async def ask(self, given: str, change: Change | None) -> Asked:
        """Ask.

        Args:
            given: the input.
            change: what becomes of the request, of a conversation the last one; left out where the agent takes none.

        Raises:
            Misuse: the agent cannot be talked with.
        """
        agent = self.agent
        if isinstance(given, Conversation):
            return await self._talk(given, change)
        if change is None or not isinstance(agent, RequestAgent):
            answer = await self._timed(lambda: agent.ask(given, self.line))
        else:
            changed = agent
            answer = await self._timed(lambda: changed.ask_changed(given, self.line, change))
        return Asked(answer, (), answer.latency_ms)

    async def _talk(self, given: Conversation, change: Change | None) -> Asked:
        if not isinstance(self.agent, TalkingAgent):
            raise Misuse("this agent is asked once in a run, so a golden prompt cannot be a list of turns")
        said: list[Turn] = []
        answer, total_ms, last = Answer(), 0.0, len(given.turns) - 1
        async with self.agent.conversation(self.line) as say:
            for at, (text, number) in enumerate(zip(given.turns, given.numbers, strict=True)):
                if answer.error is not None:
                    said.append(Turn(text, "", NOT_ASKED, 0.0, 0, number))
                    continue
                before, changed = self.count(), change if at == last else None
                answer = await self._timed(lambda text=text, changed=changed: say(text, changed))  # type: ignore[misc]
                total_ms += answer.latency_ms
                error = None if answer.error is None else str(answer.error)
                calls, took_ms = self.count() - before, round(answer.latency_ms, 1)
                said.append(Turn(text, answer.output, error, took_ms, calls, number))
        return Asked(_placed(answer, said), tuple(said), total_ms)

    async def _timed(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer by the run's own time, or a time-out where that makes it too late."""
        before_s = self.clock.skipped_s
        answer = await ask()
        skipped_ms = (self.clock.skipped_s - before_s) * 1000
        answer = replace(answer, latency_ms=answer.latency_ms + skipped_ms)
        if self.limit_ms is None or answer.error is not None or answer.latency_ms <= self.limit_ms:
            return answer
        late = AgentError("timeout", f"no answer within {self.limit_ms} ms")
        return replace(answer, output="", error=late, latency_ms=float(self.limit_ms))


def _placed(answer: Answer, said: list[Turn]) -> Answer:
    """The answer, whose error says in which turn it was; one in the last turn stands for itself."""
    at = next((at for at, turn in enumerate(said, 1) if turn.error is not None), len(said))
    if answer.error is None or at == len(said):
        return answer
    return replace(answer, error=replace(answer.error, message=f"turn {at} of {len(said)}: {answer.error.message}"))
