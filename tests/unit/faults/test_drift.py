import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.config.model import LlmFault
from flakestorm.core.choices import Choices
from flakestorm.faults.drift import drifted
from flakestorm.patterns.refusal import is_refusal

LEVELS = ("subtle", "moderate", "significant")
KINDS = ("json_field_rename", "verbosity_shift", "format_change", "refusal_rephrase", "tone_shift")
PROSE = "Your flight is booked, thank you. It leaves at nine. Please be there at eight."
ORDER = '{"order_id": 7, "items": [{"unitPrice": 2.5, "name": "tea"}]}'


def drift(text: str, kind: str, severity: str = "moderate", **more: object) -> str:
    spec = LlmFault(mode="response_drift", drift_type=kind, severity=severity, **more)
    return drifted(text, spec, Choices(1))


@pytest.mark.parametrize(
    ("severity", "names"),
    [
        ("subtle", ["orderId", "Items", "unit_price", "Name"]),
        ("moderate", ["order_id_value", "items_value", "unitPrice_value", "name_value"]),
        ("significant", ["field_1", "field_2", "field_3", "field_4"]),
    ],
)
def test_json_fields_are_renamed_and_values_are_not(severity, names) -> None:
    value = json.loads(drift(ORDER, "json_field_rename", severity))
    assert [*value, *value[names[1]][0]] == names
    assert value[names[0]] == 7
    assert list(value[names[1]][0].values()) == [2.5, "tea"]


def test_two_fields_do_not_become_one() -> None:
    assert json.loads(drift('{"a_b": 1, "a__b": 2}', "json_field_rename", "subtle")) == {"aB": 1, "aB_": 2}


def test_json_in_a_code_fence_is_found() -> None:
    changed = drift(f"Here you are:\n```json\n{ORDER}\n```\nBye.", "json_field_rename", "subtle")
    assert changed.startswith("Here you are:\n```json\n{")
    assert '"orderId"' in changed
    assert changed.endswith("\n```\nBye.")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (PROSE, "json_field_rename"),
        ("[1, 2]", "json_field_rename"),
        (PROSE, "refusal_rephrase"),
        *(("  ", k) for k in KINDS),
    ],
)
def test_where_there_is_nothing_to_change_nothing_changes(text, kind) -> None:
    assert drift(text, kind) == text


REFUSALS = ["I'm sorry, but I can't help with that.", "I'm sorry, but I'm not able to help with that."]
LONG = "One two. Three four! Five six? Seven eight. Nine ten."
CHANGEABLE = [
    *(("json_field_rename", text) for text in (ORDER, '{"a": 1}', '{"_": {"b_c": 2}}')),
    *(("refusal_rephrase", text) for text in REFUSALS),
    *((kind, text) for kind in ("format_change", "tone_shift") for text in (PROSE, ORDER, LONG, *REFUSALS, "fine")),
    *(("verbosity_shift", text) for text in (PROSE, ORDER, LONG, "fine", "x" * 50, "x" * 120, "x" * 900)),
]


@pytest.mark.parametrize(("kind", "text"), CHANGEABLE)
def test_the_severities_differ_from_each_other_and_from_the_answer(kind, text) -> None:
    assert len({text, *(drift(text, kind, severity) for severity in LEVELS)}) == 4


@pytest.mark.parametrize("text", [PROSE, LONG, "A single sentence can be cut in its middle as well."])
def test_so_do_those_that_make_it_shorter(text) -> None:
    short = [drift(text, "verbosity_shift", severity, direction="compress") for severity in LEVELS]
    assert len(text) > len(short[0]) > len(short[1]) > len(short[2]) > 0
    assert all(text.startswith(each) for each in short)


@given(st.text("ab .!", min_size=1, max_size=300).filter(str.strip))
def test_whatever_the_answer_each_severity_is_longer(text) -> None:
    longer = [drift(text, "verbosity_shift", severity) for severity in LEVELS]
    assert len(text) < len(longer[0]) < len(longer[1]) < len(longer[2])
    assert all(each.startswith(text) for each in longer)


def test_formats() -> None:
    assert drift(PROSE, "format_change", "subtle") == f"```\n{PROSE}\n```"
    assert drift(PROSE, "format_change", "moderate").count("\n- ") == 3
    assert json.loads(drift(PROSE, "format_change", "significant"))["response"]["content"] == PROSE


def test_verbosity_goes_both_ways() -> None:
    assert len(drift(PROSE, "verbosity_shift", factor=3)) >= 3 * len(PROSE)
    assert drift(PROSE, "verbosity_shift", direction="compress", factor=0.3) == "Your flight is booked, thank you."
    assert drift("One sentence.", "verbosity_shift", direction="compress") == "One sentence."


def test_a_refusal_is_rephrased_until_it_is_hard_to_recognise() -> None:
    refusal = "I'm sorry, but I can't help with that."
    assert is_refusal(drift(refusal, "refusal_rephrase", "subtle"))
    assert not is_refusal(drift(refusal, "refusal_rephrase", "significant"))


@given(st.text(), st.sampled_from(KINDS), st.sampled_from(LEVELS))
def test_any_text_drifts_the_same_way_twice(text, kind, severity) -> None:
    assert drift(text, kind, severity) == drift(text, kind, severity)


@given(
    st.recursive(
        st.one_of(st.integers(), st.text(), st.none()),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    ),
    st.sampled_from(LEVELS),
)
def test_renamed_json_stays_json_of_the_same_shape(value, severity) -> None:
    def shape(v):
        if isinstance(v, dict):
            return [shape(x) for x in v.values()]
        return [shape(x) for x in v] if isinstance(v, list) else v

    text = json.dumps(value)
    changed = json.loads(drift(text, "json_field_rename", severity))
    assert shape(changed) == shape(value)
