"""Nobody answers: the fault that tools and models have in common."""

from __future__ import annotations

from flakestorm.config.model import LlmFault, ToolFault
from flakestorm.core.call import Call, Sleep
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.errors import CallFailed
from flakestorm.faults.answers import TIMEOUT_MS
from flakestorm.faults.base import Scene, llm_faults, tool_faults

__all__ = ["MODEL_TIMEOUT_MS", "timeout"]

MODEL_TIMEOUT_MS = 8_000
"""Of a model fault. The official SDKs ask three times before they give up; all three, and their pauses, fit into the 30
seconds that an agent has for an answer (`agent.timeout`), so what is seen is how the agent takes it."""


def timeout(spec: ToolFault | LlmFault, scene: Scene) -> Interceptor:
    """No answer comes: `delay_ms` (tools 30000, models 8000) pass, or as long as the agent waits; then the call fails.

    The request never gets through. It is played on every call, whatever protocol it speaks.
    """
    default_ms = MODEL_TIMEOUT_MS if isinstance(spec, LlmFault) else TIMEOUT_MS
    delay_ms = default_ms if spec.delay_ms is None else spec.delay_ms

    def stage(_call: Call) -> Flow:
        scene.fired(f"no answer within {delay_ms} ms")
        yield Sleep(delay_ms / 1000)
        raise CallFailed("timeout", f"no answer within {delay_ms} ms", injected=True)

    return stage


tool_faults.add("timeout")(timeout)
llm_faults.add("timeout")(timeout)
