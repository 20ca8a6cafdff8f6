"""Reading JSON that strangers wrote.

Replies and requests are hostile until proven otherwise: a field may be missing, null, or of any type. Each function
here takes whatever came and gives the type that was asked for, empty if it was something else, so that the wires read
without a check at every step and never raise.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from functools import cache
from typing import Any

import orjson

__all__ = [
    "Doc",
    "Sketch",
    "bare_error",
    "dump",
    "error_of",
    "items",
    "number",
    "obj",
    "objects",
    "offered",
    "outline",
    "outlined",
    "parse",
    "parse_prefix",
    "string",
    "text_of",
]

Doc = dict[str, Any]
"""A JSON object."""

_LONG = 4096


def parse(data: bytes) -> Doc | None:
    """The JSON object these bytes are, None if they are anything else."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def outline(data: bytes) -> Doc | None:
    """As `parse`, for those who ask only which members there are and of what kind: in a long document the lists and
    objects are not read, and whatever one of them holds, `...` stands for it."""
    if type(data) is Sketch:
        return data.outline
    if len(data) < _LONG:
        return parse(data)
    try:
        return outlined(_members().decode(data))
    except (ValueError, RecursionError):
        return None


class Sketch(bytes):
    """Stands for the bytes of a document of which the outline is known, where nothing but that is asked for."""

    outline: Doc

    @classmethod
    def of(cls, outline: Doc) -> Sketch:
        """One with this outline, as `outline` gives it."""
        sketch = cls()
        sketch.outline = outline
        return sketch


def outlined(members: Mapping[str, Any]) -> Doc:
    """The outline of a document with these members, each a `msgspec.Raw`.

    Raises:
        ValueError: one of them is no JSON.
    """
    return {name: _unread(memoryview(raw)) for name, raw in members.items()}


@cache
def _members() -> Any:
    import msgspec  # only long documents need it

    return msgspec.json.Decoder(dict[str, msgspec.Raw])


def _unread(raw: memoryview) -> Any:
    first = raw[:1].tobytes()
    if first not in b"[{":
        return orjson.loads(raw)
    empty = len(raw) < _LONG and not raw[1:-1].tobytes().strip()
    if first == b"[":
        return [] if empty else [...]
    return {} if empty else {"...": ...}


def parse_prefix(text: str) -> Doc:
    """The members of a JSON object that are complete in this first part of its text."""
    from pydantic_core import from_json  # few replies are cut inside a document, and it is slow to import

    try:
        return obj(from_json(text, allow_partial=True))
    except ValueError:
        return {}


def dump(value: object) -> bytes:
    """Compact JSON. Text that UTF-8 cannot hold (lone surrogates) and deep nesting are left to the slower encoder."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def obj(value: object) -> Doc:
    """The value if it is an object."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The value if it is an array."""
    return value if isinstance(value, list) else []


def objects(value: object) -> list[Doc]:
    """The objects in the value if it is an array."""
    return [item for item in items(value) if isinstance(item, dict)]


def string(value: object) -> str:
    """The value if it is a string."""
    return value if isinstance(value, str) else ""


def text_of(content: object, kinds: Container[str] = ("text",)) -> str:
    """The text of a content: a string, or the text parts of a list (others are images, audio, reasoning).

    Args:
        content: whatever stands there.
        kinds: the types of parts that are text.
    """
    if isinstance(content, list):
        return "".join(string(part.get("text")) for part in objects(content) if part.get("type") in kinds)
    return string(content)


def error_of(doc: Doc, *kinds: str) -> str | None:
    """What a document says of its `error`: the message, else the kind it names, else all of it; None without one.

    Args:
        doc: any reply.
        kinds: the names under which this provider states the kind of an error.
    """
    error = doc.get("error")
    if isinstance(error, dict):
        stated = (string(error.get(name)) for name in ("message", *kinds))
        return next(filter(None, stated), "") or dump(error).decode()
    return (string(error) or dump(error).decode()) if error else None


def bare_error(doc: Doc) -> str | None:
    """The message of an error that is not wrapped in `error`: gateways in front of a model leave that out."""
    return string(doc.get("message")) or string(doc.get("detail")) or None


def offered(tools: Iterable[tuple[Doc, object]]) -> tuple[tuple[str, ...], dict[str, Doc]]:
    """The names of tools, and under them the JSON Schema of their arguments.

    Args:
        tools: the object that names the tool, and what is said of its arguments, None where nothing is.
    """
    named = [(name, schema) for tool, schema in tools if (name := string(tool.get("name")))]
    return tuple(name for name, _ in named), {name: schema for name, schema in named if isinstance(schema, dict)}


def number(value: object) -> int | None:
    """The value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
