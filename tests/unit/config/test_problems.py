"""Errors in words: where, what, and what to do."""

from __future__ import annotations

import pytest

from config_support import BASE, complaints
from flakestorm.config.load import loads
from flakestorm.config.problems import Problem, config_error
from flakestorm.errors import ConfigError


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (
            "tool_fault: []",
            "3: tool_fault: unknown key 'tool_fault'; known keys here: version, agent, model, mutations",
        ),
        ("chaos: {tool_fault: []}", "3: chaos.tool_fault: unknown key 'tool_fault'; did you mean 'tool_faults'?"),
        (
            "chaos:\n  tool_faults:\n    - mode: slow\n      delay: 5",
            "6: chaos.tool_faults[0].delay: unknown key 'delay'",
        ),
        ("advanced: {concurrency: many}", "3: advanced.concurrency: must be an integer between 1 and 100, not 'many'"),
        ("advanced: {concurrency: 101}", "3: advanced.concurrency: must be an integer between 1 and 100, not 101"),
        ("advanced: {concurrency: 1.5}", "3: advanced.concurrency: must be an integer between 1 and 100, not 1.5"),
        ("model: {temperature: hot}", "3: model.temperature: must be a number between 0 and 2, not 'hot'"),
        ("model: {temperature: .nan}", "3: model.temperature: must be a number between 0 and 2, not .nan"),
        ("boundary: {allow_live: perhaps}", "3: boundary.allow_live: must be true or false, not 'perhaps'"),
        ("boundary: {tools: [a]}", "3: boundary.tools: must be a mapping, not a list"),
        (
            "advanced: {seed: 123456789012345678901234567890}",
            "3: advanced.seed: must be an integer between -9223372036854775808 and 9223372036854775807, "
            "not 123456789012345678901234567890",
        ),
        ("boundary: {redact: a}", "3: boundary.redact: must be a list of text, not 'a'"),
        ("invariants: x", "3: invariants: must be a list of mappings, not 'x'"),
        ("invariants: [{type: latency, max_ms: 0}]", "must be an integer greater than 0, not 0"),
        (
            "output: {format: htm}",
            "3: output.format: must be one of html, json, junit, markdown, sarif, terminal, not 'htm'; "
            "did you mean 'html'?",
        ),
        ("version: 3.0", "3: version: must be one of 1.0, 2.0, not 3.0"),
        ("version: true", "3: version: must be one of 1.0, 2.0, not true"),
        ("contract: {}", "3: contract.name: this key is missing: the contract's name"),
        ("chaos_matrix: [{name: ''}]", "3: chaos_matrix[0].name: must be text that is not empty, not ''"),
        (
            "chaos: {context_attacks: {overflow: {tokens: 1}}}",
            "3: chaos.context_attacks.overflow.tokens: unknown key 'tokens'",
        ),
        (
            "replays: {sources: [{type: langsmit}]}",
            "'type' must be one of langfuse, langsmith, langsmith_run, otel, not 'langsmit'; did you mean 'langsmith'?",
        ),
        ("replays: {sources: [{project: x}]}", "'type' must be one of"),
        (
            "replays: {sources: [{type: langsmith, projekt: x}]}",
            "3: replays.sources[0].projekt: unknown key 'projekt'; did you mean 'project'?",
        ),
        ("scoring: {mutation: 1}", "3: scoring: the weights must sum to 1.0, but sum to 1.8"),
        ("mutations: {custom_templates: {a: {prompt}}}", "(a text that starts with a brace needs quotes)"),
    ],
)
def test_every_kind_of_mistake_is_said_in_words(extra: str, said: str) -> None:
    assert said in "\n".join(complaints(extra))


def test_a_value_with_several_shapes_is_one_problem() -> None:
    with pytest.raises(ConfigError) as caught:
        loads("agent:\n  endpoint: x\n  start: {a: b}\ngolden_prompts: [a]")
    assert str(caught.value) == "3: agent.start: must be text or a list of text, not a mapping".replace("3: ", "", 1)
    assert caught.value.line == 3


def test_all_problems_come_at_once_in_the_order_of_the_file_with_the_first_ones_line() -> None:
    text = BASE + "advanced: {retries: 9}\nextra: 1\noutput:\n  format: pdf\n"
    with pytest.raises(ConfigError) as caught:
        loads(text, file="f.yaml")
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == ["f.yaml:3", "f.yaml:4", "f.yaml:6"]
    assert (caught.value.line, caught.value.key) == (3, "advanced.retries")


def test_a_missing_block_is_named() -> None:
    with pytest.raises(ConfigError, match=r"f.yaml:1: agent: this key is missing: the agent under test"):
        loads("golden_prompts: [a]", file="f.yaml")


def test_an_agent_that_lacks_what_its_type_needs() -> None:
    with pytest.raises(ConfigError, match=r"f.yaml:1: agent: an agent of type 'command' needs 'start'"):
        loads("agent: {type: command}\ngolden_prompts: [a]", file="f.yaml")
    with pytest.raises(ConfigError, match=r"needs 'endpoint'"):
        loads("agent: {type: python}\ngolden_prompts: [a]", file="f.yaml")


def test_other_spellings_are_no_problem_beside_one() -> None:
    text = "version: 1\nagent: {endpoint: x, method: get, type: ' HTTP '}\nmodel: {provider: OpenAI}\nextra: 1\n"
    with pytest.raises(ConfigError) as caught:
        loads(text + "golden_prompts: [42]", file="f.yaml")
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == ["extra"]


def test_switches_from_variables_may_be_words() -> None:
    assert loads(BASE + "boundary: {allow_live: '${A}'}", variables={"A": "Yes"}).boundary.allow_live is True
    assert loads(BASE + "boundary: {allow_live: '${A}'}", variables={"A": "off"}).boundary.allow_live is False


def test_a_long_list_of_problems_is_cut() -> None:
    error = config_error([Problem((f"k{i}",), i, "no") for i in range(1, 61)], file="f")
    assert str(error).splitlines()[0] == "f:1: k1: no"
    assert str(error).splitlines()[-1] == "... and 10 more"
    assert len(str(error).splitlines()) == 51


def test_a_problem_is_said_once() -> None:
    assert str(config_error([Problem((), 1, "no"), Problem((), 1, "no")], file="f")) == "f:1: no"


def test_keys_are_written_as_people_write_them() -> None:
    assert Problem(("contract", "invariants", 0, "type"), 1, "").key == "contract.invariants[0].type"
