from __future__ import annotations

import pytest

from faults_support import World, tool_call
from flakestorm.config.model import Chaos, ContextAttack, LlmFault, Scenario, ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.errors import Misuse
from flakestorm.faults.schedule import Schedule

CHAOS = Chaos(
    tool_faults=[ToolFault(tool="search", mode="error"), ToolFault(mode="slow", delay_ms=10)],
    llm_faults=[LlmFault(mode="rate_limit", after_calls=5)],
    context_attacks=[ContextAttack(type="overflow", enabled=False)],
)


def test_a_schedule_holds_a_scenarios_faults_in_config_order() -> None:
    schedule = Schedule.of(CHAOS)
    assert [(p.index, p.family, p.mode) for p in schedule.planned] == [
        (0, "tool", "error"),
        (1, "tool", "slow"),
        (2, "llm", "rate_limit"),
    ]
    assert schedule.describe() == ("tool/search=error", "tool/*=slow:10", "llm/*=rate_limit,after_calls=5")
    assert schedule == Schedule.of(Scenario(name="the same", **CHAOS.given()))


def test_a_mode_of_a_later_version_is_refused_by_name() -> None:
    with pytest.raises(Misuse, match="the tool fault mode 'zzz' is not available in this version; available: "):
        Schedule.of(Chaos(tool_faults=[ToolFault(mode="zzz")]))


def test_what_cannot_be_played_is_the_very_fault_that_was_planned() -> None:
    bad = ToolFault(mode="zzz")
    with pytest.raises(Misuse) as caught:
        Schedule.of(Chaos(tool_faults=[ToolFault(mode="error"), ToolFault(mode="zzz"), bad][::2]))
    assert caught.value.about is bad


def test_what_is_written_can_be_listed_even_if_it_cannot_be_played() -> None:
    chaos = Chaos(tool_faults=[ToolFault(mode="wrong_value")], context_attacks=[ContextAttack(type="overflow")])
    assert Schedule.written(chaos).describe() == ("tool/*=wrong_value", "llm/*=overflow")
    assert Schedule.written(CHAOS) == Schedule.of(CHAOS)


def test_injections_are_exactly_these_faults() -> None:
    schedule = Schedule.injecting(["tool/search#2=error:500", "llm/gpt-4o#1=rate_limit"])
    assert schedule.describe() == ("tool/search#2=error:500", "llm/gpt-4o#1=rate_limit")
    assert [planned.index for planned in schedule.planned] == [0, 1]
    ledger, world = Ledger(), World()
    stage = schedule.stage(Choices(1), ledger)
    assert [world.cross(stage, tool_call(n=n)).status for n in (1, 2, 3)] == [200, 500, 200]


def test_staging_writes_what_is_planned_into_the_ledger() -> None:
    ledger = Ledger()
    Schedule.of(CHAOS).stage(Choices(1), ledger)
    assert (ledger.planned, ledger.tools_planned, ledger.llms_planned) == (3, 2, 1)


def test_an_empty_schedule_lets_everything_pass() -> None:
    ledger, world = Ledger(), World()
    stage = Schedule().stage(Choices(1), ledger)
    assert world.cross(stage, tool_call()) is world.answer
    assert (ledger.planned, ledger.fired) == (0, [])


def test_each_run_counts_for_itself() -> None:
    schedule = Schedule.of(Chaos(tool_faults=[ToolFault(mode="error", times=1)]))
    for _ in range(2):
        stage, world = schedule.stage(Choices(1), Ledger()), World()
        assert [world.cross(stage, tool_call(n=n)).status for n in (1, 2)] == [503, 200]
