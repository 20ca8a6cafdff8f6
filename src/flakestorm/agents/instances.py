"""Launched HTTP agents: a pool of instances, each on a port and a channel of its own.

An instance serves one run at a time, because its traffic is told apart by its channel alone. For the same reason one
whose run did not end with a whole reply is thrown away, and so is one that has calls under way when the next run is to
begin: it may still be working on the old input, and what it then sends would land on the next run's tape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flakestorm.agents.commandline import command_line
from flakestorm.agents.environ import inherited
from flakestorm.agents.mcp import servers
from flakestorm.agents.process import Program
from flakestorm.agents.ready import READY_LIMIT_S, address, free_port, listening, until_ready
from flakestorm.config.model import Agent
from flakestorm.engine.ports import Boundary, Channel
from flakestorm.errors import AgentUnreachable, ConfigError

__all__ = ["Instance", "Instances", "environment", "fill_port"]

_PORT = "{port}"
_PORT_ATTEMPTS = 3


@dataclass(eq=False, slots=True)
class Instance:
    """One launched agent.

    Args:
        program: its process group.
        channel: its way to the gateway.
        port: what stands for `{port}`; None where the config fixes the port.
        endpoint: the agent's endpoint with the port filled in.
    """

    program: Program
    channel: Channel
    port: int | None
    endpoint: str


class Instances:
    """Launches agents when they are needed, up to a number, and hands them out one run at a time.

    Args:
        agent: the `agent` block of the config; `start` is set.
        boundary: gives each instance its channel.
        folder: where instances run.
        size: how many may run at once; one, whatever this says, where the config fixes the port.

    Raises:
        ConfigError: `{port}` is used in some places and missing in others.
    """

    def __init__(self, agent: Agent, boundary: Boundary, *, folder: Path, size: int) -> None:
        self._agent, self._boundary, self._folder = agent, boundary, folder
        self._own_ports = uses_port(agent)
        self._idle: list[Instance] = []
        self._all: set[Instance] = set()
        self._dying: set[Program] = set()
        self._places = asyncio.Semaphore(size if self._own_ports else 1)

    async def take(self) -> Instance:
        """An instance nobody else uses: an idle one, or a new one. Give it back with `give`.

        Raises:
            AgentUnreachable: a new one could not be started.
        """
        await self._places.acquire()
        try:
            while self._idle:
                instance = self._idle.pop()
                if instance.program.running and await instance.channel.settled():
                    return instance
                self._discard(instance)
            return await self._launch()
        except BaseException:
            self._places.release()
            raise

    def give(self, instance: Instance, *, reusable: bool) -> None:
        """Back into the pool; one that is not reusable is killed."""
        if reusable and instance.program.running and instance in self._all:
            self._idle.append(instance)
        else:
            self._discard(instance)
        self._places.release()

    async def close(self) -> None:
        """Stop every instance."""
        stopping, self._all = self._all, set()
        self._idle.clear()
        for instance in stopping:
            instance.channel.close()
        await asyncio.gather(*(instance.program.stop() for instance in stopping))
        await self._until_dead()

    def _discard(self, instance: Instance) -> None:
        if instance in self._all:
            self._all.discard(instance)
            instance.channel.close()
        instance.program.kill()
        self._dying.add(instance.program)

    async def _until_dead(self) -> None:
        dying, self._dying = self._dying, set()
        await asyncio.gather(*(program.wait() for program in dying))

    async def _launch(self) -> Instance:
        await self._until_dead()
        for _ in range(_PORT_ATTEMPTS - 1):
            try:
                return await self._launch_once()
            except AgentUnreachable as error:
                if not (self._own_ports and _port_was_taken(str(error))):
                    raise
        return await self._launch_once()

    async def _launch_once(self) -> Instance:
        agent = self._agent
        port = free_port() if self._own_ports else None
        endpoint = fill_port(agent.endpoint, port)
        if not self._own_ports:
            await _demand_free(endpoint)
        env = environment(agent, port)
        channel = await self._boundary.channel(env)
        program: Program | None = None
        try:
            start = agent.start or ()
            filled = fill_port(start, port) if isinstance(start, str) else [fill_port(part, port) for part in start]
            program = Program(command_line(filled), cwd=self._folder, env={**env, **channel.env})
            ready = fill_port(agent.ready, port) if isinstance(agent.ready, str) else agent.ready
            await until_ready(program, ready, endpoint, limit_s=READY_LIMIT_S)
        except BaseException:
            channel.close()
            if program is not None:
                program.kill()
                self._dying.add(program)
            raise
        instance = Instance(program, channel, port, endpoint)
        self._all.add(instance)
        return instance


def uses_port(agent: Agent) -> bool:
    """Whether each instance has a port of its own.

    Raises:
        ConfigError: the agent is told its port but not asked there. (One that is asked there but not told in `start`
            or `env` still finds it in the variable PORT.)
    """
    start = [agent.start] if isinstance(agent.start, str) else agent.start or []
    asked = _PORT in agent.endpoint
    elsewhere = any(_PORT in str(t) for t in (*start, *agent.env.values(), agent.ready, agent.reset_endpoint))
    if elsewhere and not asked:
        raise ConfigError("{port} is used elsewhere in this block, so endpoint must use it too", key="agent.endpoint")
    return asked


def fill_port(text: str, port: int | None) -> str:
    """The text with `{port}` filled in."""
    return text if port is None else text.replace(_PORT, str(port))


def environment(agent: Agent, port: int | None) -> dict[str, str]:
    """The caller's environment and `agent.env`, PORT, by which many agents learn where to listen, and `agent.mcp`."""
    mine: Mapping[str, str] = {name: fill_port(value, port) for name, value in agent.env.items()}
    own = {} if port is None else {"PORT": str(port)}
    return {**inherited(), **own, **servers(agent), **mine}


async def _demand_free(endpoint: str) -> None:
    host, port = address(endpoint, key="agent.endpoint")
    if await listening(host, port):
        raise AgentUnreachable(
            f"port {port} is already in use by another program; stop it or use {{port}} in start, endpoint and ready"
        )


def _port_was_taken(message: str) -> bool:
    """Somebody was quicker: between finding a free port and the agent's using it, another program took it."""
    message = message.lower()
    return "address already in use" in message or "eaddrinuse" in message
