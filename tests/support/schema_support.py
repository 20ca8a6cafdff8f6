"""The published JSON Schemas, and documents held to them: whatever a command writes is in there."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def held_to(name: str, document: Any) -> None:
    """The document is valid, and has no key that the schema does not tell of."""
    schema = json.loads((REFERENCE / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(_closed(schema)).validate(document)


def _closed(schema: Any) -> Any:
    """The same schema, with no room for further keys."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("required"), list) and "additionalProperties" not in schema:
        closed["additionalProperties"] = False
    return closed
