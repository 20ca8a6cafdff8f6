"""One instance of an HTTP agent that all runs share: what its users share when it is out in the world.

Its calls go out as they would without flakestorm, past no gateway: nothing tells the calls of two runs of one instance
apart, and what is measured is the agent alone. Requests are sent and replies are timed on an event loop of their own,
so that judging one run, which takes longer than a short wait, is no part of another one's latency.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace as changed

from flakestorm.agents.client import ExchangeFailed
from flakestorm.agents.http import HttpAgent
from flakestorm.agents.loop import AgentLoop
from flakestorm.config.model import Config
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.turns import short_turns
from flakestorm.engine.ports import Boundary, Line, Say

if TYPE_CHECKING:
    from flakestorm.agents.instances import Instance, Instances
    from flakestorm.mutations.outgoing import Outgoing

__all__ = ["SharedAgent"]

_DEATH_THROES_S = 0.5
_AGES_S = 3600.0  # whoever asks keeps to agent.timeout

_OURS = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL)
"""Why this process, and not the agent, has no connection to give."""


class SharedAgent:
    """An agent behind `agent.endpoint`, launched once where there is `agent.start`, and asked by all runs at once.

    A connection that is refused, or that nobody takes, is what a user would see, and so the agent's failure.

    Args:
        config: the whole configuration. It resets nothing, for that would hit other runs, and repeats no request.

    Raises:
        ConfigError: the `agent` block cannot be used as it is.
    """

    def __init__(self, config: Config) -> None:
        alone = changed(config.agent, reset_endpoint=None, reset_function=None)
        advanced = changed(config.advanced, retries=0)
        self._config = changed(config, agent=alone, advanced=advanced).at(config.folder)
        self._outside = cast("Boundary", _Outside())
        self._asked = _Asked(self._config, self._outside, concurrency=1)
        self._instances: Instances | None = None
        self._instance: Instance | None = None
        self._loop = AgentLoop()
        self._turns = ExitStack()
        self._started = False
        self._doubted = False

    async def start(self) -> None:
        """Launch it, or see that somebody listens at the endpoint.

        Raises:
            AgentUnreachable: it could not be launched, or nobody listens; the message says what to do.
        """
        agent = self._config.agent
        try:
            if agent.start and self._instance is None:
                from flakestorm.agents.instances import Instances  # only what launches needs the means for it

                folder = Path(self._config.folder, agent.cwd or "").absolute()
                self._instances = Instances(agent, self._outside, folder=folder, size=1)
                self._instance = await self._instances.take()
                there = changed(agent, start=None, ready=None, endpoint=self._instance.endpoint)
                placed = changed(self._config, agent=there).at(self._config.folder)
                self._asked = _Asked(placed, self._outside, concurrency=1)
            await self._asked.start()
            if not self._started:
                self._started = True
                self._turns.enter_context(short_turns())  # so that a reply is timed while another is judged
        except BaseException:
            await self.close()
            raise

    async def ask(self, prompt: str, line: Line) -> Answer:
        """One run, beside all others."""
        async with self.conversation(line) as say:
            return await say(prompt)

    @asynccontextmanager
    async def conversation(self, line: Line) -> AsyncIterator[Say]:
        """One run of several turns, with `agent.session` under one id."""
        async with self._asked.conversation(line) as inner:

            async def say(prompt: str, change: Callable[[Outgoing], Outgoing] | None = None) -> Answer:
                answer = await self._loop.run(lambda: inner(prompt, change), limit_s=_AGES_S)
                if answer.error is None or not (ending := await self._ending(answer.error)):
                    return answer
                dead = AgentError("crash", f"the agent died under load: it {ending}")
                return Answer(error=dead, latency_ms=answer.latency_ms)

            yield say

    async def _ending(self, error: AgentError) -> str:
        """How it ended, if it was launched here and has. The first broken connection may come before its end does."""
        if self._instance is None:
            return ""
        program = self._instance.program
        if program.running and error.kind == "crash" and not self._doubted:
            self._doubted = True
            with suppress(TimeoutError):
                async with asyncio.timeout(_DEATH_THROES_S):
                    await program.wait()
        return "" if program.running else program.ending()

    async def close(self) -> None:
        """Stop it, if it was launched here, and let go of every connection."""
        instances, self._instances, self._instance = self._instances, None, None
        self._turns.close()
        self._started = False
        await self._asked.close()
        await self._loop.close()
        if instances is not None:
            await instances.close()


class _Asked(HttpAgent):
    """Asks; whoever gets no connection under load has been turned away."""

    def _unreached(self, url: str, error: ExchangeFailed) -> AgentError:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _OURS:
            return super()._unreached(url, error)
        if error.how == "timeout":
            return AgentError("timeout", f"the agent took no connection: {error}")
        return AgentError("crash", f"the agent refused the connection: {error}")


class _Outside:
    """No boundary: a channel that leads nowhere, for an agent whose calls are not held."""

    env: Mapping[str, str] = {}

    async def channel(self, env: Mapping[str, str]) -> Any:
        return self

    async def standing(self) -> None:
        return None

    def bind(self, line: Line) -> AbstractContextManager[None]:
        return nullcontext()

    async def settled(self, *, gone: bool = False) -> bool:
        return True

    def close(self) -> None:
        pass
