"""Texts of the code as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["cell", "code", "prose", "shape", "table"]

_CODE = re.compile(r"(`[^`]*`)")
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields):$")
_NAMED = re.compile(r"^(?P<names>[A-Za-z_*][\w, *]*): (?P<about>.*)", re.DOTALL)
_SIDES = ((r"<", "&lt;"), (r">", "&gt;"), (r"\*", r"\\*"))


def cell(text: str) -> str:
    """A text on one line of a table."""
    return " ".join(_plain(text).split()).replace("|", "\\|")


def code(text: str) -> str:
    """A text in a table as code."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells, which are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def prose(doc: str | None, *, skip: Sequence[str] = ()) -> str:
    """A docstring as Markdown: paragraphs, lists, `Args:` and the like as lists of names, what is indented as code.

    Args:
        doc: the docstring.
        skip: sections that are left out.
    """
    parts: list[str] = []
    section = ""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(doc or "")):
        lines = block.splitlines()
        if _SECTION.match(lines[0] if lines else ""):
            section, lines = lines[0][:-1], lines[1:]
            if section not in skip:
                parts += [f"{section}:", _names(lines)]
            continue
        if section and lines and lines[0].startswith(" "):
            if section not in skip:
                parts.append(_names(lines))
            continue
        section = ""
        if all(line.startswith("    ") for line in lines) and lines:
            parts.append("```text\n" + inspect.cleandoc("\n" + block) + "\n```")
        else:
            parts.append(_plain(block.removesuffix("::") + (":" if block.endswith("::") else "")))
    return "\n\n".join(part for part in parts if part)


def shape(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """What a JSON Schema allows, in a few words of Markdown; null is left out, for it means the default."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        inner = definitions.get(name, {})
        return shape(inner, definitions) if "properties" not in inner else f"`{name}`"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(dict.fromkeys(f"`{word}`" for word in schema["enum"] if word is not None))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            kinds = [shape(each, definitions) for each in schema[key] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(filter(None, kinds)))
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(_kind(each, schema, definitions) for each in kinds if each != "null") or "any value"


def _kind(kind: str, schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    if kind == "array":
        items = schema.get("items")
        held = shape(items, definitions) if isinstance(items, dict) and items else ""
        return f"list of ({held})" if " or " in held else f"list of {held}" if held else "list"
    if kind == "object":
        values = schema.get("additionalProperties")
        held = shape(values, definitions) if isinstance(values, dict) and values else ""
        return f"mapping to ({held})" if " or " in held else f"mapping to {held}" if held else "mapping"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    low, high = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    bounds = f"{low} to {high}" if low is not None and high is not None else f"from {low}" if low is not None else ""
    bounds = f"above {above}" if above is not None else bounds
    return words[kind] + (f", {bounds}" if bounds and kind in ("integer", "number") else "")


def _names(lines: list[str]) -> str:
    """The lines below `Args:` as a list."""
    text = inspect.cleandoc("\n" + "\n".join(lines))
    entries: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and entries:
            entries[-1] += " " + line.strip()
        else:
            entries.append(line)
    made = []
    for entry in entries:
        found = _NAMED.match(entry)
        names = ", ".join(f"`{name.strip()}`" for name in found["names"].split(",")) if found else ""
        made.append(f"- {names}: {_plain(found['about'])}" if found else f"- {_plain(entry)}")
    return "\n".join(made)


def _plain(text: str) -> str:
    """Prose in which only code and lists are markup."""
    parts = _CODE.split(text)
    for index in range(0, len(parts), 2):
        for found, instead in _SIDES:
            parts[index] = re.sub(found, instead, parts[index])
    return "".join(parts)
