"""`${VAR}` in values, and keys that must not stand in a file."""

from __future__ import annotations

import pytest

from config_support import complaints, config
from flakestorm.config.expand import LITERAL_KEY, expand, literal_keys
from flakestorm.config.marked import parse, unfold


def expanded(text: str, **variables: str) -> object:
    root = parse(text)
    assert list(expand(root, variables)) == []
    return unfold(root)


def test_every_value_is_expanded_and_keys_are_not() -> None:
    assert expanded("a: ${X}\n${X}: ['${X}${Y}', {b: 'x ${Y} y'}]\n", X="1", Y="2") == {
        "a": "1",
        "${X}": ["12", {"b": "x 2 y"}],
    }


def test_escaped_and_other_dollars_stay() -> None:
    assert expanded("['$${X}', '$X', '$', '${}', '${1}', '$$', '{X}', '^a$']", X="1") == [
        "${X}", "$X", "$", "${}", "${1}", "$$", "{X}", "^a$",
    ]  # fmt: skip


def test_what_a_variable_holds_is_not_expanded_again_even_through_an_alias() -> None:
    assert expanded("a: &a ${X}\nb: *a\n", X="${Y}", Y="no") == {"a": "${Y}", "b": "${Y}"}


def test_a_variable_that_is_not_set_is_named_with_its_line() -> None:
    assert complaints("output:\n  path: ${NOWHERE}/${NOWHERE}/${GONE}\n") == [
        "4: output.path: the environment variable NOWHERE is not set; "
        "set it, or write $${NOWHERE} for the text ${NOWHERE}",
        "4: output.path: the environment variable GONE is not set; set it, or write $${GONE} for the text ${GONE}",
    ]


def test_an_empty_variable_is_set() -> None:
    assert config("boundary: {redact: ['${E}']}", variables={"E": ""}).boundary.redact == [""]


def test_the_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    from flakestorm.config.load import loads

    monkeypatch.setenv("FLAKESTORM_TEST_PROMPT", "hi")
    assert loads("agent: {endpoint: x}\ngolden_prompts: ['${FLAKESTORM_TEST_PROMPT}']").golden_prompts == ["hi"]


def test_bare_variables_are_expanded_where_2_0_did_so_and_stay_where_they_are_not_set() -> None:
    loaded = expanded(
        "agent: {endpoint: 'http://$HOST/$NO', headers: {A: 'Bearer $T'}, query_params: {q: $T}, env: {E: $T}}",
        HOST="h",
        T="t",
    )
    assert loaded == {
        "agent": {
            "endpoint": "http://h/$NO", "headers": {"A": "Bearer t"}, "query_params": {"q": "t"}, "env": {"E": "$T"},
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "where"),
    [
        ('model:\n  provider: openai\n  api_key: "sk-1234"\n', "5: model.api_key"),
        ('model: {provider: ollama, api_key: "x"}\n', "3: model.api_key"),
        ('model: {api_key: "prefix ${K}"}\n', "3: model.api_key"),
        ('model: {api_key: "$K"}\n', "3: model.api_key"),
        ("model: {api_key: 12345}\n", "3: model.api_key"),
        ("chaos:\n  api_key: x\n", "4: chaos.api_key"),
    ],
)
def test_a_literal_key_is_refused_and_never_shown(extra: str, where: str) -> None:
    found = complaints(extra, variables={"K": "secret"})
    assert found[0] == f"{where}: {LITERAL_KEY}"
    assert "sk-1234" not in "".join(found)


def test_a_key_from_a_variable_or_none_at_all_is_fine() -> None:
    assert config('model: {api_key: "${K}"}', variables={"K": "s"}).model.api_key == "s"
    assert config('model: {api_key: ""}').model.api_key == ""
    assert config("model: {api_key: null}").model.api_key is None


def test_a_key_whose_variable_is_not_set_is_an_error_too() -> None:
    assert complaints('model: {api_key: "${K}"}')[0].startswith(
        "3: model.api_key: the environment variable K is not set"
    )


def test_a_secret_is_not_shown_when_its_value_is_wrong() -> None:
    found = complaints("advanced: {concurrency: '${S}'}", variables={"S": "hunter2"})
    assert found == ["3: advanced.concurrency: must be an integer between 1 and 100, not '${S}'"]


def test_literal_keys_names_every_one() -> None:
    root = parse("a: {api_key: x}\nb: [{api_key: y}, {api_key: '${Z}'}]\n")
    assert [problem.key for problem in literal_keys(root)] == ["a.api_key", "b[0].api_key"]
