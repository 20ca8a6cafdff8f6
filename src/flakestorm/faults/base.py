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

__all__ = ["ContextMode", "LlmMode", "Scene", "ToolMode", "context_attacks", "inward", "llm_faults", "tool_faults"]


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


ToolMode = Callable[[ToolFault, Scene], Interceptor]
LlmMode = Callable[[LlmFault, Scene], Interceptor]
ContextMode = Callable[[ContextAttack, Scene], Interceptor]

tool_faults: Registry[ToolMode] = Registry("tool fault mode", "flakestorm.faults.tool")
llm_faults: Registry[LlmMode] = Registry("LLM fault mode", "flakestorm.faults.llm")
context_attacks: Registry[ContextMode] = Registry("context attack", "flakestorm.faults.context")


def inward(call: Call) -> Flow:
    """`reply = yield from inward(call)` is `reply = yield call`, with the type said: a call is answered by a reply."""
    reply = yield call
    if reply is None:
        raise StageError(f"the call to {call.url} was answered by nothing; a driver must send a Reply")
    return reply
