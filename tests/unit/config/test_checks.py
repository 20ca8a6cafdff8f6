"""What the shapes cannot say: words, needed keys, patterns, names."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from config_support import complaints, config
from flakestorm.config import vocabulary
from flakestorm.config.faults import Chaos
from flakestorm.config.invariants import NEEDS, Invariant
from flakestorm.config.load import loads, reads
from flakestorm.errors import ConfigError


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """To say what is installed, which is looked up once otherwise."""
    vocabulary.added.cache_clear()
    yield monkeypatch
    vocabulary.added.cache_clear()


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (
            "chaos: {tool_faults: [{mode: eror}]}",
            "3: chaos.tool_faults[0].mode: unknown tool fault mode 'eror'; did you mean 'error'?",
        ),
        ("chaos: {llm_faults: [{mode: rate_limt}]}", "unknown LLM fault mode 'rate_limt'; did you mean 'rate_limit'?"),
        ("chaos: {llm_faults: [{mode: error}]}", "use 'server_error', 'overloaded' or 'rate_limit'"),
        ("chaos: {context_attacks: [{type: overflw}]}", "unknown context attack 'overflw'; did you mean 'overflow'?"),
        (
            "chaos: {context_attacks: {overflw: {}}}",
            "3: chaos.context_attacks.overflw: unknown context attack 'overflw'",
        ),
        ("chaos: {context_attacks: {system_prompt_leak_probe: {}}}", "it is an invariant"),
        ("chaos_matrix: [{name: a, tool_faults: [{mode: eror}]}]", "3: chaos_matrix[0].tool_faults[0].mode"),
        (
            "contract: {name: c, chaos_matrix: [{name: a, tool_faults: [{mode: eror}]}]}",
            "3: contract.chaos_matrix[0].tool_faults[0].mode",
        ),
        ("mutations: {types: [nois]}", "3: mutations.types[0]: unknown mutation type 'nois'; did you mean 'noise'?"),
        ("mutations: {weights: {nois: 1}}", "3: mutations.weights.nois: unknown mutation type 'nois'"),
        (
            "invariants: [{type: contain}]",
            "3: invariants[0].type: unknown invariant type 'contain'; did you mean 'contains'?",
        ),
        ("contract: {name: c, invariants: [{type: contain}]}", "3: contract.invariants[0].type"),
        ("mutations: {count: 51}", 'must be an integer between 1 and 50 in a file of version "1.0"'),
    ],
)
def test_words_that_are_not_known(extra: str, said: str) -> None:
    assert said in "\n".join(complaints(extra))


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ('agent: {start: ["a\\0"]}', "agent.start[0]"),
        ('agent: {cwd: "a\\0"}', "agent.cwd"),
        ('agent: {env: {A: "a\\0"}}', "agent.env.A"),
        ('agent: {env: {"a\\0": A}}', "agent.env.a\0"),
        ('output: {path: "a\\0"}', "output.path"),
        ('output: {filename_template: "a\\0"}', "output.filename_template"),
    ],
)
def test_the_system_is_told_no_nul(keys: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(f"golden_prompts: [a]\n{keys}\n")
    assert f"{key}: holds the character U+0000" in str(caught.value)


@pytest.mark.parametrize("name", ["''", "A=B", "'='"])
def test_names_of_variables(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a variable"):
        loads(f"golden_prompts: [a]\nagent: {{env: {{{name}: x}}}}\n")


@pytest.mark.parametrize("kind", sorted(NEEDS))
def test_each_type_needs_its_keys(kind: str) -> None:
    found = "\n".join(complaints(f"invariants:\n  - id: rule\n    type: {kind}\n"))
    for key in NEEDS[kind]:
        assert f"5: invariants[0].{key}: invariant 'rule' of type '{kind}' needs '{key}' (" in found


@pytest.mark.parametrize("value", ["''", "null", "[]"])
def test_a_needed_key_must_not_be_empty(value: str) -> None:
    kind, key = ("contains_any", "values") if value == "[]" else ("contains", "value")
    assert f"needs '{key}'" in "\n".join(complaints(f"invariants: [{{type: {kind}, {key}: {value}}}]"))


def test_zero_calls_is_a_limit() -> None:
    assert config("invariants: [{type: max_calls, limit: 0}]").invariants[0].limit == 0
    assert config("invariants: [{type: max_cost, limit: 0.05}]").invariants[0].limit == 0.05


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (
            "invariants: [{type: regex, pattern: 'a('}]",
            "3: invariants[0].pattern: 'a(' is not a valid regular expression: missing ), unterminated "
            "subpattern at position 1",
        ),
        (
            "invariants:\n  - type: excludes_pattern\n    patterns:\n      - ok\n      - '*'",
            "7: invariants[0].patterns[1]: '*' is not a valid regular expression: nothing to repeat at position 0",
        ),
        ("invariants: [{type: regex, pattern: 'a{99999999999}'}]", "is not a usable regular expression"),
    ],
)
def test_patterns_must_compile(extra: str, said: str) -> None:
    assert said in complaints(extra)[0]


def test_a_doubtful_pattern_is_taken_without_a_warning() -> None:
    assert config("invariants: [{type: regex, pattern: '[[a]'}]").invariants[0].pattern == "[[a]"


def test_explicit_ids_are_unique_in_their_list() -> None:
    extra = "invariants:\n  - {id: a, type: completes}\n  - {id: a, type: valid_json}\n"
    assert complaints(extra) == [
        "5: invariants[1].id: two invariants have the id 'a': the other is on line 4; give each an id of its own"
    ]
    both = "invariants: [{id: a, type: completes}]\ncontract: {name: c, invariants: [{id: a, type: completes}]}"
    assert config(both).contract is not None


def test_scenarios_have_names_of_their_own() -> None:
    extra = "contract:\n  name: c\n  chaos_matrix:\n    - name: a\n    - name: b\n    - name: a\n"
    assert complaints(extra) == [
        "8: contract.chaos_matrix[2].name: two scenarios are named 'a': the other is on line 6; "
        "give each a name of its own"
    ]


def test_invariants_without_an_id_get_one_that_is_free() -> None:
    extra = """\
invariants:
  - {type: completes}
  - {type: latency, max_ms: 1}
  - {type: completes}
  - {type: valid_json, id: completes-2}
  - {type: completes, id: null}
"""
    names = ["completes", "latency", "completes-3", "completes-2", "completes-4"]
    assert [rule.id for rule in config(extra).invariants] == names


def test_an_alias_of_an_invariant_gets_an_id_of_its_own() -> None:
    extra = "invariants: [&a {type: completes}]\ncontract: {name: c, invariants: [*a, {type: completes}]}"
    loaded = config(extra)
    assert loaded.contract is not None
    assert [rule.id for rule in loaded.invariants] == ["completes"]
    assert [rule.id for rule in loaded.contract.invariants] == ["completes", "completes-2"]


def test_every_problem_is_reported_beside_those_of_the_shapes() -> None:
    extra = "invariants:\n  - type: contain\n    sevrity: low\n  - type: regex\nadvanced: {retries: 7}"
    found = complaints(extra)
    assert [line.split(": ")[1] for line in found] == [
        "invariants[0].type",
        "invariants[0].sevrity",
        "invariants[1].pattern",
        "advanced.retries",
    ]


def test_a_plugins_word_is_known(installed: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def points(*, group: str) -> list[EntryPoint]:
        asked.append(group)
        return [EntryPoint("volcano", "x:y", group)]

    installed.setattr(importlib.metadata, "entry_points", points)
    extra = """\
mutations: {types: [volcano]}
invariants: [{type: volcano}]
chaos: {tool_faults: [{mode: volcano}], llm_faults: [{mode: volcano}], context_attacks: [{type: volcano}]}
"""
    assert config(extra).mutations.types == ["volcano"]
    groups = {"faults", "invariants", "mutations"}
    assert set(asked) == {f"flakestorm.{group}" for group in groups}


def test_plugins_are_not_looked_for_when_every_word_is_built_in(installed: pytest.MonkeyPatch) -> None:
    def points(*, group: str) -> list[EntryPoint]:
        raise AssertionError(group)

    installed.setattr(importlib.metadata, "entry_points", points)
    assert config("invariants: [{type: completes}]\nchaos: {tool_faults: [{mode: error}]}").chaos is not None


def test_the_agent_type_is_taken_in_any_case_and_checked() -> None:
    from flakestorm.config.load import loads

    assert loads("agent: {type: HTTP, endpoint: x}\ngolden_prompts: [a]").agent.type == "http"
    with pytest.raises(ConfigError, match="unknown agent type 'htp'; did you mean 'http'"):
        loads("agent: {type: htp, endpoint: x}\ngolden_prompts: [a]")


def test_files_of_other_shapes_are_checked_too() -> None:
    with pytest.raises(ConfigError, match="unknown tool fault mode 'eror'"):
        reads("tool_faults: [{mode: eror}]", Chaos)
    with pytest.raises(ConfigError, match="needs 'value'"):
        reads("type: contains", Invariant)
