"""What a fault is, to those who write one.

A fault is a function from its settings to an interceptor. It decides *what* happens; *when* is the schedule's
business (`faults/schedule.py`), so no fault knows about probabilities or occurrences::

    @tool_faults.add("error")
    def error(spec: ToolFault, scene: Scene) -> Interceptor:
        def stage(call: Call) -> Flow:
            scene.fired(f"{spec.error_code}")
            return Reply(spec.error_code or 503, ...)
            yield
        return stage

`scene.fired()` must be called at the moment the fault takes effect and not before: a truncation that finds nothing to
cut did not fire, and a run in which nothing fired proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.registry import Registry
from flakestorm.core.site import Site

__all__ = ["LlmMode", "Scene", "ToolMode", "context_attacks", "llm_faults", "tool_faults"]


@dataclass(frozen=True, slots=True)
class Scene:
    """Where and with what luck a fault acts.

    Args:
        site: the call it was scheduled for.
        choices: draws of this fault at this site, keyed by (seed, scenario, prompt, trial, site, fault).
        fired: write the fault into the run's ledger, with a few words on what it did. Further calls are ignored.
    """

    site: Site
    choices: Choices
    fired: Callable[[str], None]


ToolMode = Callable[[ToolFault, Scene], Interceptor]
LlmMode = Callable[[LlmFault, Scene], Interceptor]
ContextMode = Callable[[ContextAttack, Scene], Interceptor]

tool_faults: Registry[ToolMode] = Registry("tool fault mode", "flakestorm.faults.tool")
llm_faults: Registry[LlmMode] = Registry("LLM fault mode", "flakestorm.faults.llm")
context_attacks: Registry[ContextMode] = Registry("context attack", "flakestorm.faults.context")
