"""The order of faults is total, and it puts the smallest explanation first."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.config.vocabulary import CONTEXT_ATTACKS, LLM_MODES, TOOL_MODES
from flakestorm.faults.order import WEAKEST_FIRST, schedule_size, size
from flakestorm.faults.planned import parse_fault

SMALLEST_FIRST = [
    "tool/search#1=slow:100",
    "tool/search#1=slow:5000",
    "tool/search#2=slow:100",
    "tool/search=slow,times=2",
    "tool/search=slow",
    "llm/m#1=rate_limit",
    "tool/search#1=error",
    "tool/search#1=timeout:10",
    "llm/m#1=empty",
    "tool/search#1=malicious_response:no",
    "tool/search#1=malicious_response:none",
    "tool/search#1=indirect_injection",
]


def test_the_smallest_is_first() -> None:
    faults = [parse_fault(line) for line in SMALLEST_FIRST]
    mixed = random.Random(1).sample(faults, len(faults))
    assert [planned.line for planned in sorted(mixed, key=size)] == SMALLEST_FIRST


def test_fewer_faults_are_smaller_than_weaker_ones_and_their_order_does_not_count() -> None:
    slow, late, hostile = (parse_fault(SMALLEST_FIRST[at]) for at in (0, 1, -2))
    assert schedule_size([]) < schedule_size([hostile]) < schedule_size([slow, late]) < schedule_size([slow, hostile])
    assert schedule_size([slow, hostile]) == schedule_size([hostile, slow])


def test_every_mode_that_the_config_knows_has_its_place() -> None:
    placed = [mode for modes in WEAKEST_FIRST for mode in modes]
    assert len(placed) == len(set(placed))
    assert set(placed) == TOOL_MODES.words | LLM_MODES.words | CONTEXT_ATTACKS.words


@given(st.sampled_from(SMALLEST_FIRST), st.sampled_from(SMALLEST_FIRST))
def test_only_equal_faults_are_equal(one: str, other: str) -> None:
    first, second = size(parse_fault(one)), size(parse_fault(other))
    assert (first == second) == (one == other)
    assert (first < second) != (first >= second)
