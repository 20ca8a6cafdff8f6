from __future__ import annotations

import pytest

from faults_support import World, scene, tool_call
from flakestorm.config.model import ToolFault
from flakestorm.core.call import Call, Reply
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.errors import Misuse, StageError
from flakestorm.faults.base import Change, Scene, inward, result_faults, tool_faults
from flakestorm.faults.planned import Planned
from flakestorm.wire.results import Told


def test_a_fault_of_ones_own_is_a_function_from_settings_to_a_stage() -> None:
    def teapot(spec: ToolFault, scene: Scene) -> Interceptor:
        def stage(call: Call) -> Flow:
            scene.fired("418")
            return Reply(418, body=(spec.message or "").encode())
            yield call

        return stage

    world, fired = World(), list[str]()
    reply, body = world.read(teapot(ToolFault(mode="teapot", message="short and stout"), scene(fired)), tool_call())
    assert (reply.status, body, fired, world.asked) == (418, b"short and stout", ["418"], [])


def test_a_second_form_for_results_is_a_function_from_what_was_told() -> None:
    @result_faults.add("teapot of these tests")
    def teapot(spec: ToolFault, choices: Choices, told: Told) -> Change:
        return Change("418", Told(f"{told.text}? I'm a teapot", failed=True), replaces=True)

    planned = Planned(0, "tool", ToolFault(mode="teapot of these tests", where="result"))
    planned.check()
    assert planned.change(Told("coffee"), Choices(1)) == Change(
        "418", Told("coffee? I'm a teapot", True), replaces=True
    )


def test_inward_is_the_call_answered_by_its_reply() -> None:
    def stage(call: Call) -> Flow:
        return (yield from inward(call))

    world = World()
    assert world.cross(stage, tool_call()) is world.answer
    assert world.asked == [tool_call()]


def test_inward_names_a_driver_that_answers_with_nothing() -> None:
    flow = inward(tool_call())
    next(flow)
    with pytest.raises(StageError, match=r"https://tools\.test/search"):
        flow.send(None)


def test_the_registry_of_tool_modes_refuses_what_it_does_not_know() -> None:
    with pytest.raises(Misuse, match="unknown tool fault mode 'eror'"):
        tool_faults.get("eror")
