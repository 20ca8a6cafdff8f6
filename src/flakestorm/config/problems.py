"""What is wrong with a configuration, said in the reader's words, with the line it stands on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from flakestorm.config.marked import Mapping, Node, Scalar, Sequence
from flakestorm.core.registry import nearest
from flakestorm.errors import ConfigError

__all__ = ["Path", "Problem", "config_error", "node_at", "problems_of"]

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list indexes from the top of the file."""

_Schema: TypeAlias = dict[str, Any]
_MAX_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, on which line, and what to do about it."""

    path: Path
    line: int
    message: str

    @property
    def key(self) -> str:
        """The path as people write it: `contract.invariants[0].type`."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text


def config_error(problems: Iterable[Problem], *, file: str | None) -> ConfigError:
    """All problems as one error: in the order of the file, one per line, the first one's line and key on the error."""
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: problem.line)
    first, rest = ordered[0], ordered[1:]
    message = first.message
    for problem in rest[: _MAX_SHOWN - 1]:
        message += f"\n{ConfigError(problem.message, file=file, line=problem.line, key=problem.key or None)}"
    if len(ordered) > _MAX_SHOWN:
        message += f"\n... and {len(ordered) - _MAX_SHOWN} more"
    return ConfigError(message, file=file, line=first.line, key=first.key or None)


def problems_of(error: ValidationError, root: Node, model: type[BaseModel]) -> Iterator[Problem]:
    """What pydantic found, in words.

    Where a value may have one of several shapes pydantic reports each of them; here it is one problem per place.
    """
    whole = model.model_json_schema(by_alias=True)
    seen: set[Path] = set()
    for detail in error.errors(include_url=False):
        extra = detail["type"] in ("extra_forbidden", "missing")
        loc = detail["loc"][:-1] if extra else detail["loc"]
        path, line, node, schema = _locate(loc, root, whole)
        if extra:
            key = str(detail["loc"][-1])
            if isinstance(node, Mapping):
                line = node.lines.get(key, line)
            path = (*path, key)
        if path in seen:
            continue
        seen.add(path)
        yield Problem(path, line, _message(detail, node, schema, whole))


def node_at(loc: Path, root: Node) -> Node:
    """The node that a location of pydantic's means, or the nearest one above it."""
    return _locate(loc, root, {})[2]


def _locate(loc: Path, root: Node, whole: _Schema) -> tuple[Path, int, Node, _Schema]:
    """Follow a location as far as the file goes.

    pydantic's locations hold, beside keys and indexes, the names of union members; those are no keys and are skipped.
    The mapping form of a list (`context_attacks`) is addressed by index there and by key here.
    """
    path: Path = ()
    line, node, schema = root.line, root, _resolve(whole, whole)
    for part in loc:
        if isinstance(node, Mapping) and isinstance(part, int) and part < len(node.entries):
            key = list(node.entries)[part]
            path, line, node = (*path, key), node.lines[key], node.entries[key]
            schema = _resolve(_list_of(schema, whole).get("items", {}), whole)
        elif isinstance(node, Mapping) and str(part) in node.entries:
            path, line, node = (*path, str(part)), node.lines[str(part)], node.entries[str(part)]
            schema = _member(schema, str(part), whole)
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            path, node = (*path, part), node.items[part]
            line = node.line
            schema = _resolve(_list_of(schema, whole).get("items", {}), whole)
    return path, line, node, schema


def _message(detail: Any, node: Node, schema: _Schema, whole: _Schema) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(str(detail["loc"][-1]), _keys(schema, node, whole))
    if kind == "missing":
        wanted = _member(schema, str(detail["loc"][-1]), whole)
        about = wanted.get("description")
        return f"this key is missing{f': {about}' if about else ''}"
    if kind == "value_error":
        return str(context["error"])
    wanted_text = _wanted(schema, whole)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tags = sorted(schema.get("discriminator", {}).get("mapping", {}))
        given = node.entries.get("type") if isinstance(node, Mapping) else None
        raw = given.raw if isinstance(given, Scalar) else ""
        return f"'type' must be one of {', '.join(tags)}{_instead(given)}{_guess(raw, tags)}"
    if kind == "too_short":
        return "needs at least one entry"
    options = [str(option) for option in _options(schema, whole)]
    raw = node.raw if isinstance(node, Scalar) else ""
    return f"must be {wanted_text}{_instead(node)}{_guess(raw, options)}"


def _unknown(key: str, known: list[str]) -> str:
    close = nearest(key, known)
    shown = repr(key if len(key) <= 60 else f"{key[:57]}...")
    if close:
        return f"unknown key {shown}; did you mean {close!r}?"
    return f"unknown key {shown}; known keys here: {', '.join(known)}" if known else f"unknown key {shown}"


def _guess(raw: str, options: list[str]) -> str:
    close = nearest(raw, options) if raw[:1].isalpha() else None
    return f"; did you mean {close!r}?" if close else ""


def _instead(node: Node | None) -> str:
    """What is there now, as the file says it."""
    if node is None:
        return ""
    if isinstance(node, Sequence):
        return ", not a list"
    if isinstance(node, Mapping):
        braces = len(node.entries) == 1 and all(
            isinstance(v, Scalar) and v.value is None for v in node.entries.values()
        )
        return ", not a mapping" + (" (a text that starts with a brace needs quotes)" if braces else "")
    if node.value is None:
        return ", but has no value"
    raw = node.raw if len(node.raw) <= 60 else f"{node.raw[:57]}..."
    return f", not {raw if node.plain and not isinstance(node.value, str) else repr(raw)}"


def _resolve(schema: _Schema, whole: _Schema) -> _Schema:
    """The schema behind references and behind `or null`."""
    for _ in range(10):
        if "$ref" in schema:
            about = {name: value for name, value in schema.items() if name != "$ref"}  # said of the key, not the block
            schema = {**whole.get("$defs", {}).get(schema["$ref"].rsplit("/", 1)[-1], {}), **about}
        elif "anyOf" in schema:
            real = [option for option in schema["anyOf"] if option.get("type") != "null"]
            if len(real) != 1:
                return schema
            schema = {**{k: v for k, v in schema.items() if k != "anyOf"}, **real[0]}
        else:
            return schema
    return schema


def _member(schema: _Schema, key: str, whole: _Schema) -> _Schema:
    for option in _alternatives(schema, whole):
        if key in option.get("properties", {}):
            return _resolve(option["properties"][key], whole)
        if isinstance(option.get("additionalProperties"), dict):
            return _resolve(option["additionalProperties"], whole)
    return {}


def _keys(schema: _Schema, node: Node, whole: _Schema) -> list[str]:
    """The keys that may stand here, those of the chosen kind where a `type` key chooses."""
    mapping = schema.get("discriminator", {}).get("mapping", {})
    chosen = node.entries.get("type") if isinstance(node, Mapping) else None
    if mapping and isinstance(chosen, Scalar) and chosen.value in mapping:
        return list(_resolve({"$ref": mapping[chosen.value]}, whole).get("properties", {}))
    return [key for option in _alternatives(schema, whole) for key in option.get("properties", {})]


def _alternatives(schema: _Schema, whole: _Schema) -> list[_Schema]:
    options = schema.get("anyOf") or schema.get("oneOf")
    return [_resolve(option, whole) for option in options] if options else [schema]


def _list_of(schema: _Schema, whole: _Schema) -> _Schema:
    return next((option for option in _alternatives(schema, whole) if "items" in option), {})


def _options(schema: _Schema, whole: _Schema) -> list[Any]:
    return [
        word
        for option in _alternatives(schema, whole)
        for word in option.get("enum", [option["const"]] if "const" in option else [])
    ]


def _wanted(schema: _Schema, whole: _Schema) -> str:
    """The schema of one value in a few words: `an integer between 1000 and 300000`."""
    options = _options(schema, whole)
    if options:
        return f"one of {', '.join(map(str, options))}"
    kinds = [_kind(option, whole) for option in _alternatives(schema, whole) if option.get("type") != "null"]
    return " or ".join(dict.fromkeys(kinds))


def _kind(schema: _Schema, whole: _Schema) -> str:
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return ("an integer" if kind == "integer" else "a number") + _bounds(schema)
    if kind == "array":
        inner = _wanted(_resolve(schema.get("items", {}), whole), whole)
        return f"a list of {'mappings' if inner == 'a mapping' else inner}"
    if kind == "string":
        return "text that is not empty" if schema.get("minLength") else "text"
    if kind == "object":
        return "a mapping"
    return "true or false" if kind == "boolean" else "a value"


def _bounds(schema: _Schema) -> str:
    low, high, above = schema.get("minimum"), schema.get("maximum"), schema.get("exclusiveMinimum")
    if low is not None and high is not None:
        return f" between {low:g} and {high:g}" if isinstance(low, float) else f" between {low} and {high}"
    if low is not None:
        return f" of at least {low:g}"
    return f" greater than {above:g}" if above is not None else ""
