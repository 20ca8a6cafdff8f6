"""Which kinds of agent there are, and making the one a config asks for.

A kind is imported when an agent of it is made, because an HTTP client costs more than all the rest of a command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flakestorm.config.model import Config
from flakestorm.core.registry import Registry
from flakestorm.engine.ports import Agent, Boundary
from flakestorm.errors import Misuse

__all__ = ["Factory", "Order", "agents", "make"]


@dataclass(frozen=True, slots=True)
class Order:
    """What an agent is made from.

    Args:
        config: the whole configuration; its folder is where relative paths and imports start.
        boundary: gives launched programs their channels.
        concurrency: how many runs will be asked of the agent at once.
    """

    config: Config
    boundary: Boundary
    concurrency: int


Factory = Callable[[Order], Agent]
"""Makes an agent. Plug-ins offer one in the entry-point group `flakestorm.agents`, under the name of their type."""

agents: Registry[Factory] = Registry("agent type", "flakestorm.agents")


@agents.add("http")
def _http(order: Order) -> Agent:
    from flakestorm.agents.http import HttpAgent

    return HttpAgent(order.config, order.boundary, concurrency=order.concurrency)


@agents.add("python")
def _python(order: Order) -> Agent:
    from flakestorm.agents.python import PythonAgent

    return PythonAgent(order.config)


@agents.add("command")
def _command(order: Order) -> Agent:
    from flakestorm.agents.command import CommandAgent

    return CommandAgent(order.config, order.boundary)


@agents.add("langchain")
def _langchain(_: Order) -> Agent:
    raise Misuse(
        "agent.type 'langchain' is not available in this version; use type: python with a function that calls "
        "ainvoke on the runnable"
    )


def make(config: Config, boundary: Boundary, *, concurrency: int) -> Agent:
    """The agent that the config describes, not yet started.

    Args:
        config: the whole configuration; its folder is where relative paths and imports start.
        boundary: holds the boundary of what is launched.
        concurrency: how many runs will be asked of it at once.

    Raises:
        ConfigError: the `agent` block cannot be used as it is.
        Misuse: its type is unknown, or it asks for something this version does not have.
    """
    for key in ("tools", "mcp"):
        if getattr(config.agent, key):
            raise Misuse(f"agent.{key} is not available in this version; leave it out to go on without it")
    return agents.get(config.agent.type)(Order(config, boundary, concurrency))
