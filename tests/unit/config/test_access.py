"""What commands need of a configuration."""

from __future__ import annotations

import pytest

from config_support import config
from flakestorm.config.access import (
    all_invariants,
    contract_of,
    faults_in,
    invariants_in,
    model_of,
    require_invariants,
    scenarios_of,
    tools_of,
)
from flakestorm.config.faults import Chaos
from flakestorm.config.load import loads
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


def test_where_scenarios_are_generated_none_need_be_written() -> None:
    assert scenarios_of(config("contract: {name: c, generate: toolmaze}")) == []
    (written,) = scenarios_of(config("contract: {name: c, generate: toolmaze, chaos_matrix: [{name: a}]}"))
    assert written.name == "a"


def test_tools_are_named_by_the_boundary_and_by_faults_that_say_where_theirs_is() -> None:
    text = """
boundary: {tools: {pay: '*/pay'}}
chaos: {tool_faults: [{tool: search, match_url: '*/search', mode: error}, {tool: 'b*', match_url: '*', mode: error}]}
chaos_matrix: [{name: a, tool_faults: [{tool: search, match_url: '*/search', mode: slow}]}]
contract:
  name: c
  chaos_matrix: [{name: b, tool_faults: [{tool: rates, match_url: '*/rates', mode: error}, {tool: x, mode: error}]}]
"""
    more = Chaos.of({"tool_faults": [{"tool": "mine", "match_url": "*/mine", "mode": "error"}]})
    assert tools_of(config(text), more) == [
        ("pay", "*/pay"),
        ("mine", "*/mine"),
        ("rates", "*/rates"),
        ("search", "*/search"),
    ]


def test_invariants_and_faults_are_found_with_their_places() -> None:
    config = loads(
        """
version: "2.0"
agent: {endpoint: http://x/}
golden_prompts: [a]
invariants: [{type: completes}]
contract:
  name: c
  invariants: [{type: latency, max_ms: 9}]
  chaos_matrix: [{name: calm}, {name: down, tool_faults: [{mode: error}, {mode: slow}]}]
chaos:
  llm_faults: [{mode: empty}]
  context_attacks: [{type: overflow, enabled: false}, {type: indirect_injection}]
"""
    )
    assert [(place, rule.type) for place, rule in invariants_in(config)] == [
        (("invariants", 0), "completes"),
        (("contract", "invariants", 0), "latency"),
    ]
    assert [place for place, _ in faults_in(config)] == [
        ("contract", "chaos_matrix", 1, "tool_faults", 0),
        ("contract", "chaos_matrix", 1, "tool_faults", 1),
        ("chaos", "llm_faults", 0),
        ("chaos", "context_attacks", 1),
    ]


def test_a_model_is_asked_only_where_somebody_wrote_one_down() -> None:
    for block in ("", "model: {provider: none}\n"):
        with pytest.raises(ConfigError, match="model: polite asks a model to judge, and none is configured"):
            model_of(config(block), wanted_by=["polite"])
    assert model_of(config("model: {provider: openai, name: m}\n"), wanted_by=["polite"]).name == "m"


def test_of_two_invariants_that_are_the_same_there_is_one() -> None:
    rules = "[{type: completes, id: ends}, {type: latency, id: quick, max_ms: %d}]"
    found = all_invariants(config(f"invariants: {rules % 9}\ncontract:\n  name: c\n  invariants: {rules % 5}\n"))
    assert [str(each.id) for each in found] == ["ends", "quick", "quick (top level)"]
