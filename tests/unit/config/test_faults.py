"""Faults, chaos and scenarios as data."""

from __future__ import annotations

from typing import Any

import pytest

from config_support import refused
from flakestorm.config.faults import Chaos, ContextAttack, LlmFault, Scenario, ToolFault


def test_a_fault_is_for_every_tool_or_model_by_default() -> None:
    assert ToolFault(mode="error").tool == "*"
    assert LlmFault(mode="empty").model == "*"


def test_bounds_of_triggers() -> None:
    for bad in ({"probability": 2}, {"after_calls": -1}, {"calls": [0]}, {"times": 0}, {"error_code": 99}):
        assert next(iter(bad)) in refused({"mode": "error", **bad}, ToolFault)


def test_context_attacks_as_a_mapping() -> None:
    chaos = Chaos.of(
        {"context_attacks": {"overflow": {"inject_tokens": 9}, "memory_poisoning": None, "indirect_injection": False}}
    )
    assert chaos.context_attacks == [
        ContextAttack(type="overflow", inject_tokens=9),
        ContextAttack(type="memory_poisoning"),
        ContextAttack(type="indirect_injection", enabled=False),
    ]


def test_a_scenario_without_an_enabled_fault_is_the_control() -> None:
    assert not Scenario(name="none").chaos
    assert not Scenario(name="off", context_attacks=[ContextAttack(type="overflow", enabled=False)]).chaos
    assert Scenario(name="on", llm_faults=[LlmFault(mode="empty")]).chaos
    assert "name" in refused({"name": ""}, Scenario)


@pytest.mark.parametrize(
    ("settings", "transient"),
    [
        ({}, False),
        ({"after_calls": 2}, False),
        ({"probability": 1}, False),
        ({"probability": 0.3}, True),
        ({"times": 1}, True),
        ({"calls": [1, 3]}, True),
        ({"site": "tool/search#1"}, True),
        ({"mode": "flap"}, True),
    ],
)
def test_a_fault_that_fires_at_some_calls_only_does_not_last(settings: dict[str, Any], transient: bool) -> None:
    assert ToolFault(**{"mode": "error", **settings}).transient is transient
