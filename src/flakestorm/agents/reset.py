"""Setting an agent back before each run: `reset_endpoint` and `reset_function`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from flakestorm.agents.client import ExchangeFailed, exchange
from flakestorm.agents.reading import excerpt
from flakestorm.config.model import Agent
from flakestorm.errors import ConfigError

if TYPE_CHECKING:  # most agents have no function to be reset by
    from flakestorm.agents.loop import AgentLoop

__all__ = ["Reset"]

_SAID_BYTES = 1000


class Reset:
    """What is done to an agent before each run.

    Runs that share what is reset must not overlap, or one would be reset in the middle of another: see `turn`.

    Args:
        agent: the `agent` block of the config.
        folder: the config's folder.
        loop: where an async `reset_function` runs; the loop of an agent in this process, so that they can share
            clients and locks. One of its own by default.

    Raises:
        ConfigError: `reset_endpoint` is neither a URL nor, for an agent that has one itself, a path.
    """

    def __init__(self, agent: Agent, folder: Path, *, loop: AgentLoop | None = None) -> None:
        self._agent, self._folder = agent, folder
        self._loop = loop
        self._function: Callable[[], Any] | None = None
        self._turn = asyncio.Lock()
        self._open = ExitStack()
        if agent.reset_endpoint is not None:
            from flakestorm.agents.ready import address  # agents in this process need not be ready

            base = agent.endpoint if agent.type == "http" else ""
            url = urljoin(base, agent.reset_endpoint).replace("{port}", "1")
            address(url, key="agent.reset_endpoint")

    def turn(self, *, instances: bool = False) -> AbstractAsyncContextManager[Any]:
        """Held for a whole run, reset included: free for all, or one run at a time where runs share what is reset.

        Args:
            instances: each run has an agent instance to itself, so an endpoint on it is not shared.
        """
        endpoint = self._agent.reset_endpoint
        shared = self._agent.reset_function or (endpoint and not (instances and _on_instance(endpoint)))
        return self._turn if shared else nullcontext()

    async def start(self) -> None:
        """Import the function, where there is one.

        Raises:
            ConfigError: `reset_function` is not of the form `module:function`, there is none of that name, or it cannot
                be called.
            AgentUnreachable: its module cannot be imported.
        """
        name = self._agent.reset_function
        if name is None or self._function is not None:
            return
        import flakestorm.agents.threads  # noqa: F401 -- before a run begins
        from flakestorm.agents.loop import AgentLoop
        from flakestorm.core.loading import importing_from, load_object

        self._loop = self._loop or AgentLoop()
        self._open.enter_context(importing_from(self._folder))
        found = load_object(name, folder=self._folder, key="agent.reset_function")
        if not callable(found):
            raise ConfigError(f"{name} is {type(found).__name__}, not a function", key="agent.reset_function")
        self._function = found

    async def __call__(self, *, base: str = "", port: int | None = None) -> str | None:
        """Reset.

        Args:
            base: the agent's own endpoint; a `reset_endpoint` that is only a path is taken relative to it.
            port: takes the place of `{port}`.

        Returns:
            What went wrong, as "reset failed: ...", or None.
        """
        if self._agent.reset_endpoint is None and self._function is None:
            return None
        try:
            async with asyncio.timeout(self._agent.timeout / 1000):
                trouble = await self._call_endpoint(base, port) or await self._call_function()
        except TimeoutError:
            trouble = f"it took longer than {self._agent.timeout} ms"
        return f"reset failed: {trouble}" if trouble else None

    async def close(self) -> None:
        """Let go of the loop and the import path."""
        self._open.close()
        self._function = None
        if self._loop is not None:
            await self._loop.close()

    async def _call_endpoint(self, base: str, port: int | None) -> str | None:
        if self._agent.reset_endpoint is None:
            return None
        url = urljoin(base, self._agent.reset_endpoint.replace("{port}", str(port)))
        try:
            reply = await exchange("POST", url, headers=tuple(self._agent.headers.items()), limit_bytes=_SAID_BYTES)
        except (ExchangeFailed, ValueError) as error:
            return f"POST {url}: {error}"
        if reply.status < 400:
            return None
        return f"POST {url} was answered with status {reply.status}: {excerpt(reply.body[:_SAID_BYTES])}"

    async def _call_function(self) -> str | None:
        if self._function is None or self._loop is None:
            return None
        from flakestorm.agents.loop import Overdue
        from flakestorm.agents.threads import in_thread

        function, limit_s = self._function, self._agent.timeout / 1000
        try:
            if inspect.iscoroutinefunction(function):
                await self._loop.run(function, limit_s=limit_s)
            elif inspect.isawaitable(result := await in_thread(function)):
                await self._loop.run(lambda: result, limit_s=limit_s)
        except Overdue as error:
            raise TimeoutError from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return self._raised(error)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            return self._raised(error)
        return None

    def _raised(self, error: BaseException) -> str:
        from flakestorm.core.loading import last_frames

        return f"{self._agent.reset_function} raised {last_frames(error)}"


def _on_instance(endpoint: str) -> bool:
    return "{port}" in endpoint or endpoint.startswith("/")
