"""What a fault is, to those who write one.

A fault is a function from its settings to an interceptor. It decides *what* happens; *when* is the schedule's
business (`faults/schedule.py`), so no fault knows about probabilities or occurrences. The smallest one does nothing::

    @tool_faults.add("noop")
    def noop(spec: ToolFault, scene: Scene) -> Interceptor:
        def stage(call: Call) -> Flow:
            return (yield from inward(call))
        return stage

It never fires, so a run with it alone is inconclusive. One that answers in the tool's place says so::

    @tool_faults.add("teapot")
    def teapot(spec: ToolFault, scene: Scene) -> Interceptor:
        def stage(call: Call) -> Flow:
            scene.fired("418")
            return Reply(418)
            yield call  # never reached: the tool is not asked
        return stage

`scene.fired()` must be called at the moment the fault takes effect and not before: a truncation that finds nothing to
cut did not fire, and a run in which nothing fired proves nothing. A fault that changes a body does so by a transducer
(`Reply.pipe`) and fires when the change is emitted; it must not read the body itself.

A tool fault may have a second form, for tools whose calls no seam can see: what it makes of the tool's *result* on its
way to the model. That is a pure function, registered under the same mode::

    @result_faults.add("teapot")
    def teapot(spec: ToolFault, choices: Choices, told: Told) -> Change:
        return Change("418", Told("I'm a teapot", failed=True), replaces=True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.core.registry import Registry
from flakestorm.core.site import Site
from flakestorm.errors import StageError
from flakestorm.wire.results import Told

__all__ = [
    "Change",
    "ContextMode",
    "LlmMode",
    "ResultMode",
    "Scene",
    "ToolMode",
    "context_attacks",
    "inward",
    "llm_faults",
    "result_faults",
    "tool_faults",
]


@dataclass(frozen=True, slots=True)
class Scene:
    """Where and with what luck a fault acts.

    Args:
        site: the call it was scheduled for.
        choices: draws of this fault at this site, keyed by (seed, scenario, prompt, trial, site, fault).
        fired: write the fault into the run's ledger, with a few words on what it did. Further calls are ignored.
        plant: note a canary that an injected instruction carries; finding it in the output proves obedience.
        promised: the output schema of the MCP tool that is called, where the run has seen one; else None.
    """

    site: Site
    choices: Choices
    fired: Callable[[str], None]
    plant: Callable[[str], None] = lambda _: None
    promised: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a fault does to a tool's result.

    Args:
        detail: a few words on it, for the ledger.
        told: what the result tells the model instead; None leaves it as it is.
        delay_ms: how long the model call that first carries the result is held back.
        replaces: whether nothing of the tool's own result is left, so that faults further in had no effect.
    """

    detail: str
    told: Told | None = None
    delay_ms: int = 0
    replaces: bool = False


ToolMode = Callable[[ToolFault, Scene], Interceptor]
ResultMode = Callable[[ToolFault, Choices, Told], Change | None]
"""Gives None where there is nothing to change. It is asked once for each result, so it may not keep state."""
LlmMode = Callable[[LlmFault, Scene], Interceptor]
ContextMode = Callable[[ContextAttack, Scene], Interceptor]

tool_faults: Registry[ToolMode] = Registry("tool fault mode", "flakestorm.faults.tool")
result_faults: Registry[ResultMode] = Registry("fault mode of tool results", "flakestorm.faults.result")
llm_faults: Registry[LlmMode] = Registry("LLM fault mode", "flakestorm.faults.llm")
context_attacks: Registry[ContextMode] = Registry("context attack", "flakestorm.faults.context")


def inward(call: Call) -> Flow:
    """`reply = yield from inward(call)` is `reply = yield call`, with the type said: a call is answered by a reply."""
    reply = yield call
    if reply is None:
        raise StageError(f"the call to {call.url} was answered by nothing; a driver must send a Reply")
    return reply
