from __future__ import annotations

import pytest

from faults_support import World, llm_fault, scene, tool_call
from flakestorm.config.model import Agent, ToolFault
from flakestorm.core.call import Call
from flakestorm.core.pipeline import Interceptor
from flakestorm.errors import CallFailed
from flakestorm.faults.base import llm_faults, tool_faults
from flakestorm.faults.timeout import MODEL_TIMEOUT_MS, timeout
from model_replies import WIRES, call_of


def of_tool(fired: list[str], **settings: object) -> Interceptor:
    return timeout(ToolFault(mode="timeout", **settings), scene(fired))  # type: ignore[arg-type]


def test_tools_and_models_share_it() -> None:
    assert llm_faults.get("timeout") is tool_faults.get("timeout") is timeout


@pytest.mark.parametrize("call", [tool_call(), *(call_of(wire) for wire in WIRES)], ids=lambda call: call.wire)
def test_it_waits_and_fails_without_asking_the_world(call) -> None:  # type: ignore[no-untyped-def]
    world, fired = World(), list[str]()
    make = of_tool if call.kind == "tool" else lambda fired, **more: llm_fault(fired, "timeout", **more)
    with pytest.raises(CallFailed) as failure:
        world.cross(make(fired, delay_ms=250), call)
    assert (failure.value.how, failure.value.injected) == ("timeout", True)
    assert (world.asked, world.slept, fired) == ([], [0.25], ["no answer within 250 ms"])


@pytest.mark.parametrize(
    ("stage", "call", "takes_s"),
    [(of_tool([]), tool_call(), 30.0), (llm_fault([], "timeout"), call_of("anthropic"), 8.0)],
)
def test_how_long_it_takes_by_default(stage: Interceptor, call: Call, takes_s: float) -> None:
    world = World()
    with pytest.raises(CallFailed):
        world.cross(stage, call)
    assert world.slept == [takes_s]


def test_the_attempts_of_an_sdk_at_a_mute_model_fit_into_the_time_that_an_agent_has() -> None:
    longest_pauses_ms = 500 + 1000
    assert 3 * MODEL_TIMEOUT_MS + longest_pauses_ms < Agent(endpoint="http://agent").timeout


def test_it_has_fired_even_if_the_agent_leaves_first() -> None:
    world, fired = World(), list[str]()
    flow = of_tool(fired)(tool_call())
    next(flow)
    flow.close()
    assert fired
    assert world.asked == []
