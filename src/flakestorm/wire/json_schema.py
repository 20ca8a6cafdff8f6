"""Whether a value fits a JSON Schema, asked of schemas that strangers wrote.

The answer is the `jsonschema` library's. What is added here is caution: a schema may be malformed, refer to documents
elsewhere (which are never fetched) or to itself without end; of such a schema nothing is known to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["checker"]


def checker(schema: Mapping[str, Any]) -> Callable[[Any], bool]:
    """A test for values: whether they fit this schema, its `format`s included.

    Args:
        schema: a JSON Schema; 2020-12 unless it says otherwise.
    """
    # imported here, because it takes 50 ms and most runs check nothing
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    kind = validator_for(schema, default=Draft202012Validator)
    registry: Registry[Any] = Registry()
    validator = kind(schema, registry=registry, format_checker=kind.FORMAT_CHECKER)

    def fits(value: Any) -> bool:
        try:
            return bool(validator.is_valid(value))
        except Exception:  # a malformed schema fails in as many ways as there are keywords
            return False

    return fits
