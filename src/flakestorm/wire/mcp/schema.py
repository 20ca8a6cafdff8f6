"""Lying within a JSON Schema: another text in place of the strings that the schema leaves free.

This is no validator. It knows the few keywords that tools describe their results with, and takes any other for a rule
that a foreign text might break; so a string it replaces still fits, and one it is unsure of stays.
"""

from __future__ import annotations

from typing import Any

from flakestorm.wire.shape import Doc, obj

__all__ = ["filled"]

_SAYING_NOTHING = frozenset(
    (
        "$comment",
        "$defs",
        "default",
        "definitions",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "type",
    )
)
_DEPTH = 32  # a schema that refers to itself ends here


def filled(value: Any, text: str, schema: Doc) -> Any:
    """The value with `text` in place of every string that may be any string; equal to `value` where there is none.

    Args:
        value: fits the schema.
        text: goes in.
        schema: a JSON Schema (2020-12, or an older draft: the keywords looked at are the same).
    """
    return _filled(value, text, schema, schema, 0)


def _filled(value: Any, text: str, schema: Any, root: Doc, depth: int) -> Any:
    schema = _resolved(schema, root, depth)
    if schema is None or depth > _DEPTH:
        return value
    if isinstance(value, str):
        return text if _free(schema, text, root, depth) else value
    for branch in ("anyOf", "oneOf"):  # of several shapes, the first that would let something in
        if isinstance(schema.get(branch), list) and set(schema) <= {branch, *_SAYING_NOTHING}:
            changed = (
                _filled(value, text, one, root, depth + 1) for one in schema[branch] if _shaped(value, one, root)
            )
            return next((other for other in changed if other != value), value)
    if isinstance(value, dict) and set(schema) <= _SAYING_NOTHING | {"properties", "required", "additionalProperties"}:
        known, others = obj(schema.get("properties")), schema.get("additionalProperties", True)
        return {k: _filled(v, text, known.get(k, others), root, depth + 1) for k, v in value.items()}
    if isinstance(value, list) and set(schema) <= _SAYING_NOTHING | {"items", "minItems", "maxItems"}:
        return [_filled(item, text, schema.get("items", True), root, depth + 1) for item in value]
    return value


def _free(schema: Doc, text: str, root: Doc, depth: int) -> bool:
    """Whether this text fits a schema that some string fits."""
    if depth > _DEPTH:
        return False
    for branch in ("anyOf", "oneOf"):
        if isinstance(schema.get(branch), list):
            ways = [_resolved(one, root, depth) for one in schema[branch]]
            strings = [way for way in ways if way is not None and _allows(way, "string")]
            sure = branch == "anyOf" or len(strings) == 1
            only = set(schema) <= {branch, *_SAYING_NOTHING}
            return sure and only and any(_free(way, text, root, depth + 1) for way in strings)
    if not set(schema) <= _SAYING_NOTHING | {"minLength", "maxLength"}:
        return False
    at_least, at_most = schema.get("minLength", 0), schema.get("maxLength", len(text))
    fits = isinstance(at_least, int) and isinstance(at_most, int) and at_least <= len(text) <= at_most
    return fits and _allows(schema, "string")


def _allows(schema: Doc, kind: str) -> bool:
    said = schema.get("type", kind)
    return kind in said if isinstance(said, list) else said == kind


def _shaped(value: Any, schema: Any, root: Doc) -> bool:
    found = _resolved(schema, root, 0)
    return found is not None and _allows(found, "object" if isinstance(value, dict) else "array")


def _resolved(schema: Any, root: Doc, depth: int) -> Doc | None:
    """The schema with a reference into its own document followed; None for what cannot be followed."""
    while isinstance(schema, dict) and "$ref" in schema:
        target = schema["$ref"]
        depth += 1
        if depth > _DEPTH or not isinstance(target, str) or not target.startswith("#/"):
            return None
        if not set(schema) - {"$ref"} <= _SAYING_NOTHING:
            return None
        found: Any = root
        for part in target[2:].split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        schema = found
    if schema is True:
        return {}
    return schema if isinstance(schema, dict) else None
