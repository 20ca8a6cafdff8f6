"""JSON Schema: what an output or a tool's arguments must look like.

References are resolved inside the schema only; nothing is fetched. The library is imported when a schema is first
used, because it takes a tenth of a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in
from flakestorm.contracts.evidence import plain, quote
from flakestorm.contracts.searching import search
from flakestorm.core.verdict import Verdict, failed, passed
from flakestorm.errors import Misuse

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["problem", "schema_of", "vet_schema"]


def schema_of(spec: Invariant) -> Mapping[str, Any]:
    """The schema of an invariant. One that was given as a file was read with the configuration."""
    return spec.schema_ if isinstance(spec.schema_, dict) else {}


def vet_schema(spec: Invariant) -> None:
    """Look the schema over.

    Raises:
        Misuse: it is no JSON Schema, or was given as a file that nobody has read.
    """
    if isinstance(spec.schema_, str):
        raise Misuse(f"the schema {spec.schema_!r} is a file, which is read with the configuration that names it")
    validator = _validator(_text(schema_of(spec)))
    from jsonschema.exceptions import SchemaError

    try:
        type(validator).check_schema(dict(schema_of(spec)))
    except SchemaError as error:
        raise Misuse(f"'schema' is not a JSON Schema: {error.json_path}: {plain(error.message, 200)}") from error


def problem(schema: Mapping[str, Any], value: Any) -> str:
    """The first thing that is wrong with a value, in words; empty if it fits the schema."""
    found = sorted(_validator(_text(schema)).iter_errors(value), key=lambda error: (len(error.path), error.json_path))
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0].json_path}: {plain(found[0].message, 200)}{more}"


@built_in("json_schema", "requires", needs=("schema_",), vet=vet_schema)
def json_schema(spec: Invariant, run: RunView) -> Verdict:
    """The whole output is one JSON document that fits the JSON Schema (of the draft it names, else 2020-12)."""
    try:
        document = json.loads(run.output)
    except (ValueError, RecursionError) as error:
        return failed(f"not JSON: {plain(str(error))}: {quote(run.output)}")
    wrong = problem(schema_of(spec), document)
    return failed(f"the output does not fit the schema: {wrong}") if wrong else passed("the output fits the schema")


def _text(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True, default=str)


@lru_cache(maxsize=64)
def _validator(schema: str) -> Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    document = json.loads(schema)
    kind: Any = validator_for(document, default=Draft202012Validator)
    kind = extend(kind, {"pattern": _pattern})  # type: ignore[no-untyped-call]
    made: Validator = kind(document, registry=Registry())  # an empty registry: nothing is fetched
    return made


def _pattern(validator: Validator, pattern: str, value: Any, _: Any) -> Iterator[Any]:
    """`pattern`, in bounded time: the value is the agent's.

    Raises:
        TooLong: it cannot be told.
    """
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "string") and search(pattern, 0, value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")
