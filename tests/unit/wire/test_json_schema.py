from __future__ import annotations

from typing import Any

import pytest

from flakestorm.wire.json_schema import checker

TREE = {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"in": {"$ref": "#/$defs/T"}}}}}


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "integer"}, 1, True),
        ({"type": "integer"}, "1", False),
        ({"format": "date"}, "2024-02-30", False),
        ({"format": "uuid"}, "no", False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "const": 3}, 3, True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "const": 3}, 4, False),
        ({"$schema": "https://nobody.test/own", "const": 3}, 4, False),
        (TREE, {"in": {"in": {}}}, True),
        (TREE, {"in": {"in": 3}}, False),
        ({}, None, True),
    ],
)
def test_a_value_fits_or_not(schema: dict[str, Any], value: Any, fits: bool) -> None:
    assert checker(schema)(value) is fits


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
        {"type": 7},
        {"pattern": "("},
        {"minimum": "3"},
        {"properties": []},
    ],
    ids=str,
)
def test_of_a_schema_that_cannot_be_followed_nothing_is_known_to_fit(schema: dict[str, Any]) -> None:
    check = checker(schema)
    assert not all((check({"a": 1}), check("x"), check(1)))
