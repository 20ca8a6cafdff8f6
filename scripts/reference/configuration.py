"""docs/reference/config.md: every key, with its type, default and meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from flakestorm.config.base import Strict, keys_of
from flakestorm.config.model import Config
from flakestorm.config.schema import schema

from .markdown import cell, prose, shape, table

__all__ = ["page"]

_INTRO = """# Configuration

Every key of `flakestorm.yaml`. A key that is not here is an error, which names file, line and the nearest key; so is a
key that is written twice. A key without a value has its default.

- `${VAR}` in a value is the environment variable; one that is not set is an error, and `$${VAR}` is the text `${VAR}`.
- API keys stand in the environment only: `api_key: "${OPENAI_API_KEY}"`. Literal ones are refused.
- Paths are relative to the file.
- `flakestorm schema -o flakestorm.schema.json` writes the JSON Schema, with which editors check and complete the file:
  `# yaml-language-server: $schema=flakestorm.schema.json` as its first line.
- `flakestorm contract validate` checks a file and runs nothing.
"""


def page() -> str:
    """The page."""
    written = schema()
    definitions = {**written["$defs"], "Config": written}
    parts = [_INTRO]
    for block, places in _blocks().items():
        title = ", ".join(places) if places else "The file"
        parts += [f"## {title}", prose(block.__doc__), _keys(block, definitions)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _blocks() -> dict[type[Strict], list[str]]:
    """Every kind of block, from the outermost in, with the places where it stands."""
    found: dict[type[Strict], list[str]] = {Config: []}
    for block, place in _inside(Config, ""):
        places = found.setdefault(block, [])
        if place not in places:
            places.append(place)
    return found


def _inside(block: type[Strict], at: str) -> Iterator[tuple[type[Strict], str]]:
    for name, key in keys_of(block).items():
        place = f"{at}.{name}" if at else name
        for inner in key.blocks:
            kind = inner.__struct_config__.tag
            yield inner, f"{place} ({kind})" if len(key.blocks) > 1 else place
            yield from _inside(inner, place)


def _keys(block: type[Strict], definitions: dict[str, Any]) -> str:
    described = definitions[block.__name__]["properties"]
    info = {each.encode_name: each for each in fields(block)}
    rows = []
    for name, key in keys_of(block).items():
        if key.blocks:
            kinds = " or ".join(f"[{inner.__name__}](#{_anchor(inner)})" for inner in key.blocks)
            kind = f"list of {kinds}" if key.many else kinds
        else:
            kind = shape(described[name], definitions)
        rows.append((f"`{name}`", kind, _default(info[name]), cell(key.about)))
    tag = block.__struct_config__.tag
    if tag is not None:
        rows.insert(0, ("`type`", f"`{tag}`", "**required**", "which of the kinds it is"))
    return table(("key", "holds", "default", "meaning"), rows)


def _anchor(block: type[Strict]) -> str:
    title = ", ".join(_blocks()[block])
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def _default(info: FieldInfo) -> str:
    if info.required:
        return "**required**"
    value = info.default
    if value is NODEFAULT and callable(info.default_factory):
        value = info.default_factory()
    if value is None or isinstance(value, Strict) or value in ([], {}, ""):
        return ""
    return f"`{json.dumps(value)}`"
