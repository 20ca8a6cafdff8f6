"""Which kinds of agent there are, and making the one a config asks for.

A kind is imported when an agent of it is made, because an HTTP client costs more than all the rest of a command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from flakestorm.config.model import Config
from flakestorm.core.conversation import Conversation
from flakestorm.core.record import Record
from flakestorm.core.registry import Registry
from flakestorm.engine.ports import Agent, Boundary
from flakestorm.errors import ConfigError, FlakestormError, Misuse

__all__ = ["Factory", "Order", "agents", "make"]


class Order(Record, frozen=True):
    """What an agent is made from.

    Args:
        config: the whole configuration; its folder is where relative paths and imports start.
        boundary: gives launched programs their channels.
        concurrency: how many runs will be asked of the agent at once.
        shared: whether all of them are of one instance.
    """

    config: Config
    boundary: Boundary
    concurrency: int
    shared: bool = False


Factory = Callable[[Order], Agent]
"""Makes an agent. Plug-ins offer one in the entry-point group `flakestorm.agents`, under the name of their type."""

agents: Registry[Factory] = Registry("agent type", "flakestorm.agents")


@agents.add("http")
def _http(order: Order) -> Agent:
    if order.shared:
        from flakestorm.agents.shared import SharedAgent

        return SharedAgent(order.config)
    from flakestorm.agents.http import HttpAgent

    return HttpAgent(order.config, order.boundary, concurrency=order.concurrency)


@agents.add("python")
def _python(order: Order) -> Agent:
    from flakestorm.agents.python import PythonAgent

    return PythonAgent(order.config, order.boundary)


@agents.add("langchain")
def _langchain(order: Order) -> Agent:
    from flakestorm.agents.langchain import as_runnable
    from flakestorm.agents.python import PythonAgent

    return PythonAgent(order.config, order.boundary, adapt=as_runnable)


@agents.add("command")
def _command(order: Order) -> Agent:
    from flakestorm.agents.command import CommandAgent

    return CommandAgent(order.config, order.boundary)


_BUILT_IN = frozenset(agents)
_NEEDED = ("start", "ask", "close")  # of `Agent`

_ELSEWHERE = ("http", "command")
"""Types whose functions run in another process, where no wrapper of ours can reach them."""


def make(config: Config, boundary: Boundary, *, concurrency: int, shared: bool = False) -> Agent:
    """The agent that the config describes, not yet started.

    Args:
        config: the whole configuration; its folder is where relative paths and imports start.
        boundary: holds the boundary of what is launched.
        concurrency: how many runs will be asked of it at once.
        shared: whether all of them are of one instance, as under load; matters to agents asked over HTTP.

    Raises:
        ConfigError: the `agent` block cannot be used as it is, or its type is unknown.
        Misuse: it asks for something that is not installed.
    """
    if config.agent.tools and config.agent.type in _ELSEWHERE:
        raise ConfigError(
            f"functions can be held in this process only, and an agent of type {config.agent.type!r} has its own; "
            "name its HTTP tools in boundary.tools, or give tool faults where: result",
            key="agent.tools",
        )
    if config.agent.mcp and config.agent.type == "http" and not config.agent.start:
        raise ConfigError(
            "MCP servers can be handed only to an agent that flakestorm starts: give its command in agent.start, or "
            "wrap its servers yourself (flakestorm mcp -- COMMAND)",
            key="agent.mcp",
        )
    _refuse_turns(config)
    if config.agent.request_template is not None:
        from flakestorm.agents.placeholders import demand_keys  # few agents have a template

        demand_keys(config)
    return _made(config.agent.type, Order(config, boundary, concurrency, shared))


def _made(kind: str, order: Order) -> Agent:
    """The agent that a factory gives.

    Raises:
        ConfigError: there is no such type.
        Misuse: the factory is a plug-in's, and failed, or gave what is no agent.
    """
    try:
        factory = agents.get(kind)
    except Misuse as error:
        raise ConfigError(str(error), key="agent.type") from error
    if kind in _BUILT_IN:
        return factory(order)
    where = f"agent type {kind!r} from {getattr(factory, '__module__', '?')}"
    try:
        made: object = factory(order)
    except FlakestormError:
        raise
    except Exception as error:
        raise Misuse(f"{where} cannot be made: {type(error).__name__}: {error}") from error
    missing = [name for name in _NEEDED if not callable(getattr(made, name, None))]
    if missing:
        raise Misuse(f"{where} gave what is no agent, {made!r}: it has no {', '.join(missing)}")
    return cast(Agent, made)


def _refuse_turns(config: Config) -> None:
    """Conversations that this kind of agent cannot have."""
    agent = config.agent
    if agent.session is not None and agent.type != "http":
        raise ConfigError(f"an agent of type {agent.type!r} needs no session id; leave this out", key="agent.session")
    at = next((at for at, prompt in enumerate(config.golden_prompts) if isinstance(prompt, Conversation)), None)
    if at is None:
        return
    if agent.type == "command":
        raise ConfigError(
            "this is a list of turns, and an agent of type command is run once and asked once; give one text, or "
            "serve the agent over HTTP and use type http",
            key=f"golden_prompts[{at}]",
        )
    resets = agent.reset_endpoint is not None or agent.reset_function is not None
    if agent.type == "http" and agent.session is None and not resets:
        raise ConfigError(
            "this is a list of turns, and nothing would tell the agent that they belong together: name the place of "
            "its session id (session: {cookie: NAME}, {header: NAME} or {body: NAME}), or, if it holds one "
            "conversation at a time, how to reset it (reset_endpoint)",
            key="agent.session",
        )
