"""What commands need of a configuration."""

from __future__ import annotations

import pytest

from config_support import config
from flakestorm.config.access import contract_of, require_invariants, scenarios_of
from flakestorm.errors import ConfigError


def test_invariants_are_required_with_an_example() -> None:
    require_invariants(config("invariants: [{type: completes}]"))
    with pytest.raises(ConfigError, match=r"invariants: needs at least one invariant.*\n  invariants:"):
        require_invariants(config())


def test_the_contract_or_an_example_of_one() -> None:
    assert contract_of(config("contract: {name: c, invariants: [{type: completes}]}")).name == "c"
    with pytest.raises(ConfigError, match="the config has none; for example:"):
        contract_of(config())


def test_a_contract_needs_something_to_judge_by() -> None:
    assert contract_of(config("contract: {name: c}\ninvariants: [{type: completes}]")).invariants == []
    with pytest.raises(ConfigError, match="the contract has no invariants"):
        contract_of(config("contract: {name: c}"))


def test_the_examples_in_messages_load() -> None:
    with pytest.raises(ConfigError) as caught:
        contract_of(config())
    example = "\n".join(line[2:] for line in caught.value.message.splitlines()[1:])
    loaded = config(example)
    assert contract_of(loaded).name == "booking"
    assert len(scenarios_of(loaded)) == 2


def test_the_contracts_own_matrix_comes_first_then_the_one_at_top_level() -> None:
    top = "chaos_matrix: [{name: top}]\n"
    assert [s.name for s in scenarios_of(config(top + "contract: {name: c, chaos_matrix: [{name: own}]}"))] == ["own"]
    assert [s.name for s in scenarios_of(config(top + "contract: {name: c}"))] == ["top"]
    assert [s.name for s in scenarios_of(config(top))] == ["top"]


def test_an_empty_matrix_is_an_error() -> None:
    with pytest.raises(ConfigError, match="the contract's chaos_matrix is empty; add at least one scenario"):
        scenarios_of(config("contract: {name: c}"))


def test_scenarios_that_cannot_be_generated_are_not_left_out_silently() -> None:
    with pytest.raises(ConfigError, match=r"'toolmaze'.*not available in this version"):
        scenarios_of(config("contract: {name: c, generate: toolmaze, chaos_matrix: [{name: a}]}"))
