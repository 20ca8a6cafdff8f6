"""What the engine needs from the world, as protocols. `agents/`, `boundary/`, `executors/` and the store fulfil them.

The engine never imports an adapter; `api` puts the pieces together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from flakestorm.core.answer import Answer
from flakestorm.core.clock import Clock
from flakestorm.core.draws import Draws
from flakestorm.core.pipeline import Interceptor

if TYPE_CHECKING:  # most commands mutate nothing
    from flakestorm.mutations.outgoing import Outgoing

__all__ = [
    "Adviser",
    "Agent",
    "Boundary",
    "Channel",
    "Embedder",
    "Executor",
    "HeldTool",
    "Line",
    "RequestAgent",
    "Say",
    "TalkingAgent",
    "World",
]

R = TypeVar("R")
T = TypeVar("T")


class Line(Protocol):
    """One run's crossing: the pipeline its calls flow through, wherever they come in."""

    @property
    def run(self) -> str:
        """The run's id, e.g. `r-0007`."""
        ...

    @property
    def calls(self) -> int:
        """How many calls have crossed so far."""
        ...

    @property
    def remarks(self) -> Sequence[str]:
        """What a reader of the run's tape should know about how its calls came in."""
        ...

    def reach(self, at_ms: float) -> None:
        """A reply begins, or fails to come, at this time of the run; the agent's clock, where virtual, follows."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """While entered, in-process calls of this context (and of threads and tasks started in it) cross here."""
        ...


class Channel(Protocol):
    """A launched agent instance's way to the gateway; bound to one line at a time."""

    @property
    def env(self) -> Mapping[str, str]:
        """Variables to add to the instance's environment: base URLs, proxies, shim, `FLAKESTORM_*`."""
        ...

    def bind(self, line: Line) -> AbstractContextManager[None]:
        """While entered, the instance's traffic crosses on this line. Traffic outside any line passes unrecorded."""
        ...

    async def settled(self, *, gone: bool = False) -> bool:
        """Whether the instance, between two runs, has nothing under way any more; it is given a moment for that. With
        `gone`, it has ended, and what it did last is waited for."""
        ...

    def close(self) -> None:
        """The instance is gone; its token is no longer served."""
        ...


class HeldTool(Protocol):
    """A function of the agent's that is a tool, while its calls cross."""

    @property
    def function(self) -> Callable[..., Any]:
        """What the agent must call: the function itself where it could be held from within, else a wrapper to put in
        its place."""
        ...

    def release(self) -> None:
        """Let go of it; more than once does no harm."""
        ...


class Boundary(Protocol):
    """Everything that can hold an agent's boundary: the gateway and the in-process seams."""

    @property
    def tools(self) -> Sequence[str]:
        """Names of the tools whose calls are sure to be seen, because their functions are held in process."""
        ...

    @property
    def draws(self) -> Draws | None:
        """What clock and random draws of every run follow from; None where they are real."""
        ...

    def tool(self, name: str, function: Callable[..., Any], *, pairs: bool = False) -> HeldTool:
        """From now on, calls of this function made on a run's line cross as calls of the tool `name`.

        Args:
            name: the tool's.
            function: a function, method or other callable, sync or async.
            pairs: it returns pairs of which only the first is what the tool says.

        Raises:
            Misuse: it is held already, as another tool.
        """
        ...

    def line(self, run: str, pipeline: Interceptor, clock: Clock) -> Line:
        """Open the crossing of one run, whose delays pass by this clock."""
        ...

    async def channel(self, env: Mapping[str, str]) -> Channel:
        """A channel for an instance about to be launched with this environment (it names the real upstreams)."""
        ...

    @property
    def borrowed(self) -> str:
        """The address of the standing gateway that calls come through; empty if they come through none."""
        ...

    async def standing(self) -> Channel | None:
        """The channel of an agent that somebody else started, where its calls come through a standing gateway.

        Raises:
            AgentUnreachable: another run is using that gateway.
        """
        ...

    async def close(self) -> None:
        """Stop the gateway and take the seams out."""
        ...


class Agent(Protocol):
    """The system under test."""

    async def start(self) -> None:
        """Make it ready.

        Raises:
            AgentUnreachable: it could not be started or does not answer; the message says why, with its stderr.
        """
        ...

    async def ask(self, prompt: str, line: Line) -> Answer:
        """One run: reset where the config asks for it, then the input goes in and the answer comes out; the agent's
        calls cross on the line. Resetting belongs to asking because it must hit the very instance that serves the
        run. Never raises for what the agent did wrong: that is an `Answer` with an error."""
        ...

    async def close(self) -> None:
        """Stop everything that was started, whole process groups included."""
        ...


@runtime_checkable
class TalkingAgent(Protocol):
    """An agent that can be asked several times in one run."""

    def conversation(self, line: Line) -> AbstractAsyncContextManager[Say]:
        """One run, reset included; while entered, each call of what it gives is one turn of one conversation."""
        ...


class Say(Protocol):
    """Asks the next turn."""

    def __call__(self, prompt: str, change: Callable[[Outgoing], Outgoing] | None = None, /) -> Awaitable[Answer]:
        """As `Agent.ask`, and `RequestAgent.ask_changed` where there is a change and the agent takes one."""
        ...


@runtime_checkable
class RequestAgent(Protocol):
    """An agent that is asked by a request which can be changed."""

    async def ask_changed(self, prompt: str, line: Line, change: Callable[[Outgoing], Outgoing]) -> Answer:
        """As `Agent.ask`, with the request changed on its way. It goes to the same place and is never tried again."""
        ...


class Adviser(Protocol):
    """A model that gives its opinion."""

    async def ask(self, prompt: str, *, system: str = "", temperature: float | None = None) -> str:
        """Its reply.

        Raises:
            ModelFailed: it gave none.
        """
        ...

    async def close(self) -> None:
        """Let go of the connections."""
        ...


class Embedder(Protocol):
    """Something that measures how alike two texts are in meaning."""

    async def alike(self, one: str, other: str) -> float:
        """How alike, 0 to 1.

        Raises:
            ModelFailed: it cannot be measured.
        """
        ...

    async def close(self) -> None:
        """Let go of what it holds."""
        ...


class Executor(Protocol):
    """Does independent work, several pieces at a time."""

    async def execute(
        self,
        items: Iterable[T],
        work: Callable[[T, Callable[[], Awaitable[None]]], Awaitable[R]],
        done: Callable[[int, R], None],
        concurrency: int,
        hold_s: Callable[[int], float],
    ) -> None:
        """Do the work on every item, at most `concurrency` at a time, calling `done(index, result)` as each finishes.
        The next item is asked for when it can be started, and not before: when work has ended, or has awaited what it
        is given beside its item (the rest of it is nothing that must wait its turn), and when `hold_s`, given how many
        are under way, says 0. Otherwise it is asked again after so many seconds, and when one has finished.

        Work that raises ends the execution with that exception after the others were cancelled; what finished
        before was already reported through `done`.
        """
        ...


class World(Protocol):
    """Time and places, so that the engine stays without either."""

    @property
    def skips(self) -> bool:
        """Whether delays that faults make may be skipped (`core/clock.py`)."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def now(self) -> str:
        """The time of day in UTC, ISO 8601 with a Z."""
        ...

    def limited(self, seconds: float) -> AbstractContextManager[None]:
        """While entered, code that takes longer than this is ended by a `TimeoutError`, where the platform can."""
        ...

    def tape_path(self, run: str) -> Path:
        """Where the tape of this run is to be written; its folder exists."""
        ...
