"""A world for tests of stages: it answers calls, counts them, and lets no time pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import flakestorm.faults.planned  # noqa: F401 -- it brings all the modes
from flakestorm.config.model import Chaos, ContextAttack, LlmFault, ToolFault
from flakestorm.core.call import Call, Reply
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Interceptor, drive
from flakestorm.core.site import Site
from flakestorm.core.stream import pump
from flakestorm.faults.base import Scene, llm_faults
from flakestorm.faults.schedule import Schedule
from flakestorm.faults.staging import Stage

JSON = (("content-type", "application/json"),)
SSE = (("content-type", "text/event-stream"),)
RESULTS = b'{"results": [{"flight": "BA 12", "price": 120}]}'


class World:
    """Answers every call with the same reply, or with the exception it was given.

    `asked` are the calls that reached it, `slept` the seconds that stages wanted to pass.
    """

    def __init__(self, answer: Reply | BaseException | None = None) -> None:
        self.answer = Reply(200, JSON, RESULTS) if answer is None else answer
        self.asked: list[Call] = []
        self.slept: list[float] = []

    def send(self, call: Call) -> Reply:
        self.asked.append(call)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def cross(self, stage: Interceptor, call: Call) -> Reply:
        """The reply the agent gets; its body is still to be read."""
        return drive(stage(call), self.send, self.slept.append)

    def read(self, stage: Interceptor, call: Call) -> tuple[Reply, bytes]:
        """The reply and its whole body."""
        reply = self.cross(stage, call)
        return reply, b"".join(pump(reply, self.slept.append))


def tool_call(name: str = "search", n: int = 1, url: str = "https://tools.test/search?q=oslo", **more: object) -> Call:
    """A call to a tool, as the classify stage leaves it."""
    return Call("GET", url, kind="tool", name=name, site=Site("tool", name, n), **more)  # type: ignore[arg-type]


def llm_call(name: str = "gpt-4o", n: int = 1, wire: str = "openai_chat", body: bytes = b"{}") -> Call:
    """A call to a model, as the classify stage leaves it."""
    url = "https://api.openai.com/v1/chat/completions"
    return Call("POST", url, JSON, body, kind="llm", name=name, wire=wire, site=Site("llm", name, n))


def llm_fault(
    fired: list[str], mode: str, *, seed: int = 1, idle: list[str] | None = None, **settings: object
) -> Interceptor:
    """A model fault of these settings, ready for one call; `idle` collects why it did nothing."""
    spec = LlmFault(mode=mode, **settings)  # type: ignore[arg-type]
    where = scene(fired, Site("llm", "m", 1), seed)
    return llm_faults.get(mode)(spec, where if idle is None else replace(where, idle=idle.append))


def scene(fired: list[str], site: Site | None = None, seed: int = 1) -> Scene:
    """A scene that collects what fires."""
    return Scene(site or Site("tool", "search", 1), Choices(seed), fired.append)


def stream(*chunks: bytes, headers: Iterable[tuple[str, str]] = SSE) -> Reply:
    """A streamed reply."""
    return Reply(200, tuple(headers), list(chunks))


def staged(*faults: ToolFault | LlmFault | ContextAttack, seed: int = 1) -> tuple[Stage, Ledger]:
    """The stage of a run with these faults, each kind in its order, and what is noted of them."""
    ledger = Ledger()
    chaos = Chaos(
        tool_faults=[fault for fault in faults if isinstance(fault, ToolFault)],
        llm_faults=[fault for fault in faults if isinstance(fault, LlmFault)],
        context_attacks=[fault for fault in faults if isinstance(fault, ContextAttack)],
    )
    return Schedule.of(chaos).stage(Choices(seed, "scenario", 0, 1), ledger), ledger


def tool_error(**settings: object) -> ToolFault:
    """A tool fault of mode `error`."""
    return ToolFault(mode="error", **settings)  # type: ignore[arg-type]
