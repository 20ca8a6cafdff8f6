"""docs/reference/formats.md: the machine-readable forms, from their JSON Schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .markdown import cell, prose, shape, table

__all__ = ["FOLDER", "page"]

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
_ORDER = ("report", "tape", "compare", "scan", "doctor", "certificate")
_INTRO = """# Formats

What commands write for programs. Each form is described by a JSON Schema in this folder, and what commands really write
is held to it by tests. Further keys may be added to a form; readers should ignore those that they do not know.
"""


def page() -> str:
    """The page."""
    parts = [_INTRO]
    for name in _ORDER:
        file = FOLDER / f"{name}.schema.json"
        document = json.loads(file.read_text("utf-8"))
        definitions = document.get("$defs", {})
        parts += [f"## {document['title']}", prose(document.get("description")), f"[{file.name}]({file.name})"]
        parts += _object(document, definitions, "")
        for inner, schema in definitions.items():
            if "properties" in schema:
                parts += [f"### {name}: {inner}", prose(schema.get("description"))]
                parts += _object(schema, definitions, "")
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _object(schema: dict[str, Any], definitions: dict[str, Any], at: str) -> list[str]:
    return [table(("key", "holds", "meaning"), _rows(schema, definitions, at))]


def _rows(schema: dict[str, Any], definitions: dict[str, Any], at: str) -> list[tuple[str, str, str]]:
    """One row for each key; the keys of objects that have no name of their own follow, with the way to them."""
    rows = []
    for key, inner in schema.get("properties", {}).items():
        about = cell(inner.get("description", ""))
        rows.append((f"`{at}{key}`", _held(inner, definitions), about))
        holder, way = (inner["items"], f"{at}{key}[].") if "items" in inner else (inner, f"{at}{key}.")
        if isinstance(holder, dict) and "properties" in holder:
            rows += _rows(holder, definitions, way)
    return rows


def _held(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    nothing = "null" in (schema.get("type") or ()) or {"type": "null"} in schema.get("anyOf", ())
    return shape(schema, definitions) + (" or null" if nothing else "")
