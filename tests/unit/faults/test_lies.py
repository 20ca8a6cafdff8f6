from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flakestorm.core.choices import Choices
from flakestorm.faults.lies import Lie, applied, fields_left_out, lies, place, shortened, told
from flakestorm.wire.json_schema import checker

FLIGHTS = {
    "query": {"from": "Oslo", "to": "Bergen"},
    "results": [
        {"flight": "HAT170", "price": 120, "day": "2024-05-20", "direct": True},
        {"flight": "HAT023", "price": 340, "day": "2024-06-01", "direct": False},
    ],
}

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
    | st.sampled_from(["2024-05-01", "HAT170", "Oslo", "Bergen", "10:30", "12 flights on 2024-05-01"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip
SEEDS = st.integers(0, 2**32)


def shape(value: Any) -> Any:
    """Types and keys, which a lie keeps."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__


@given(DOCUMENTS, SEEDS)
def test_a_lie_keeps_every_key_and_type_and_changes_what_it_says(document: Any, seed: int) -> None:
    before = copy.deepcopy(document)
    chosen = lies(document, Choices(seed))
    now = applied(document, chosen)
    assert document == before
    assert shape(now) == shape(document)
    assert json.loads(json.dumps(now)) == now
    assert bool(chosen) == (json.dumps(now) != json.dumps(document))
    assert bool(told(chosen)) == bool(chosen)


@given(DOCUMENTS, SEEDS)
def test_the_same_seed_tells_the_same_lies(document: Any, seed: int) -> None:
    assert lies(document, Choices(seed)) == lies(document, Choices(seed))


def test_every_way_to_lie_is_met_and_said() -> None:
    said = {told(lies(FLIGHTS, Choices(seed))) for seed in range(400)}
    for words in (
        "results[0].price 120 -> 340",  # another row
        "query.from Oslo -> Bergen, query.to Bergen -> Oslo",  # exchanged
        "results[0].direct true -> false",  # turned round
        "results[0].day 2024-05-20 -> 2024-0",  # stale
        "results[1].flight HAT023 -> HAT",  # another identifier
        "results[0].price 120 -> 1",  # shifted
    ):
        assert any(words in one for one in said), words


def test_a_long_document_is_false_in_more_places_and_the_detail_stays_short() -> None:
    rows = {"rows": [{"n": n, "price": 100 + n} for n in range(60)]}
    chosen = lies(rows, Choices(3))
    assert len(chosen) == 4
    assert told(chosen).endswith(" and 1 more")


@pytest.mark.parametrize("document", [None, {}, [], "", "Oslo", {"a": None, "b": ["open"], "c": {}}, [[], [None]]])
def test_nothing_to_lie_about(document: Any) -> None:
    assert lies(document, Choices(1)) == []


def test_a_bare_value_can_be_false_too() -> None:
    assert told(lies(True, Choices(1))) == "result true -> false"
    assert told(lies(207.5, Choices(1))).startswith("result 207.5 -> ")


def test_keys_that_say_what_a_document_is_are_left_alone() -> None:
    assert lies({"$schema": "v2020", "@context": {"a": 1}}, Choices(1)) == []


SCHEMA = {
    "type": "object",
    "properties": {
        "price": {"type": "integer", "minimum": 119, "maximum": 121},
        "class": {"enum": ["A1", "B2"]},
        "day": {"type": "string", "format": "date"},
        "seats": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "fixed": {"const": 7},
    },
    "required": ["price", "class"],
    "additionalProperties": False,
}
VALID = {"price": 120, "class": "A1", "day": "2024-05-01", "seats": [1, 2, 3], "fixed": 7}


def test_what_a_schema_forbids_is_not_said() -> None:
    check = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    seen = set()
    for seed in range(200):
        chosen = lies(VALID, Choices(seed), checker(SCHEMA))
        now = applied(VALID, chosen)
        assert check.is_valid(now), now
        seen |= {lie.words.split(" ")[0] for lie in chosen}
    assert "day" in seen
    assert "fixed" not in seen


def test_where_nothing_may_be_said_nothing_is() -> None:
    assert lies({"a": 7}, Choices(1), checker({"const": {"a": 7}})) == []


def test_a_server_that_broke_its_word_is_lied_about_as_if_it_had_given_none() -> None:
    assert lies({"a": 7}, Choices(1), checker({"const": {"a": 8}})) != []


_LEAVES = st.sampled_from(
    [
        ({"type": "integer"}, st.integers(-9, 99)),
        ({"type": "integer", "multipleOf": 5}, st.integers(-9, 9).map(lambda n: 5 * n)),
        ({"type": "number", "maximum": 10}, st.floats(-10, 10)),
        ({"type": "boolean"}, st.booleans()),
        ({"type": "string", "format": "date"}, st.dates().map(str)),
        ({"type": "string", "pattern": "^HAT[0-9]{3}$"}, st.integers(100, 999).map(lambda n: f"HAT{n}")),
        ({"enum": ["A1", "B2", 3]}, st.sampled_from(["A1", "B2", 3])),
        ({"type": ["string", "null"]}, st.none() | st.text(max_size=4)),
    ]
)


@st.composite
def described(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A schema and a value that fits it."""
    fields = draw(st.dictionaries(st.sampled_from("abcdef"), _LEAVES, min_size=1))
    required = draw(st.lists(st.sampled_from(sorted(fields)), unique=True))
    row = {"type": "object", "properties": {k: s for k, (s, _) in fields.items()}, "required": required}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "required": ["rows"]}
    rows = draw(st.lists(st.fixed_dictionaries({k: v for k, (_, v) in fields.items()}), min_size=1, max_size=4))
    return schema, {"rows": rows}


@given(described(), SEEDS)
def test_lies_and_gaps_within_a_schema_stay_within_it(pair: tuple[dict[str, Any], Any], seed: int) -> None:
    schema, document = pair
    check = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    assume(check.is_valid(document))
    check.validate(applied(document, lies(document, Choices(seed), checker(schema))))
    gone, names = fields_left_out(document, Choices(seed), checker(schema))
    optional = set(schema["properties"]["rows"]["items"]["properties"]) - set(
        schema["properties"]["rows"]["items"]["required"]
    )
    if optional:
        check.validate(shortened(document, gone))
        assert all(name.removeprefix("rows[].") in optional for name in names.split(", "))


@given(DOCUMENTS, SEEDS)
def test_what_is_left_out_is_gone_and_the_rest_is_there(document: Any, seed: int) -> None:
    before = copy.deepcopy(document)
    gone, names = fields_left_out(document, Choices(seed))
    now = shortened(document, gone)
    assert document == before
    assert bool(gone) == bool(names) == (now != document)
    for path in gone:
        at = now
        for step in path[:-1]:
            at = at[step]
        assert path[-1] not in at
    json.dumps(now)


def test_a_field_goes_from_all_rows_and_more_go_where_there_are_more() -> None:
    rows = FLIGHTS["results"]
    names = {fields_left_out(rows, Choices(seed))[1] for seed in range(60)}
    assert names == {"[].flight", "[].price", "[].day", "[].direct"}
    gone, _ = next(found for n in range(60) if (found := fields_left_out(rows, Choices(n)))[1] == "[].price")
    assert sorted(gone) == [(0, "price"), (1, "price")]
    assert all(fields_left_out(FLIGHTS, Choices(seed))[1].count(",") == 1 for seed in range(60))
    wide = {f"k{n}": n for n in range(30)}
    assert len(fields_left_out(wide, Choices(1))[0]) == 3


def test_of_fields_that_are_all_needed_one_goes_all_the_same() -> None:
    needed = {"type": "object", "required": ["a", "b"]}
    gone, _ = fields_left_out({"a": 1, "b": 2}, Choices(1), checker(needed))
    assert len(gone) == 1


@pytest.mark.parametrize("document", [None, [], {}, [1, 2], "text", 3])
def test_without_fields_nothing_is_left_out(document: Any) -> None:
    assert fields_left_out(document, Choices(1)) == ([], "")


def test_places_in_words() -> None:
    assert place(("a", 0, "b")) == "a[0].b"
    assert place(("a", 0, "b"), rows=True) == "a[].b"
    assert place((0,)) == "[0]"
    assert place(()) == "result"


def test_lies_that_are_applied_leave_the_original() -> None:
    document = {"a": [1, {"b": 2}]}
    assert applied(document, [Lie(((("a", 1, "b"), 3),), "")]) == {"a": [1, {"b": 3}]}
    assert document == {"a": [1, {"b": 2}]}
