"""What is wrong with a configuration, said in the reader's words, with the line it stands on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, TypeAlias, get_args, get_origin

from msgspec import convert
from msgspec.json import schema as json_schema

from flakestorm.config.base import Key, Strict, keys_of, members
from flakestorm.config.marked import Mapping, Node, Scalar, Sequence, unfold
from flakestorm.core.record import Record
from flakestorm.core.registry import nearest
from flakestorm.errors import ConfigError

__all__ = ["Path", "Problem", "config_error", "in_words", "problems_of", "written_at"]

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list indexes from the top of the file."""

_Schema: TypeAlias = dict[str, Any]
_MAX_SHOWN = 50


class Problem(Record, frozen=True):
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


def problems_of(root: Node, model: type[Strict]) -> Iterator[Problem]:
    """Everything in a file that does not fit the shape of a model.

    Where text is wanted and the file has a bare `8000`, `yes` or `1.10`, it means the text as written, and the tree is
    put right; so the file may fit after this although it did not before.
    """
    whole = _schema_of(model)
    return _Reader(whole).block(root, model, (), root.line, _resolve(whole, whole))


@cache
def _schema_of(model: type[Strict]) -> _Schema:
    """A model's JSON Schema, made once: making it takes far longer than reading a file. Only looked at."""
    return json_schema(model)


def in_words(data: dict[str, Any], model: type[Strict]) -> str:
    """What is wrong with values, or lists of them, that no file holds: `times: must be an integer, not 'x'`."""
    entries = {name: _node(value) for name, value in data.items()}
    root = Mapping(1, entries, dict.fromkeys(entries, 1))
    return "; ".join(
        f"{problem.key}: {problem.message}" if problem.key else problem.message for problem in problems_of(root, model)
    )


def _node(value: Any) -> Node:
    return Sequence(1, [_node(item) for item in value]) if isinstance(value, list) else Scalar(value, str(value), 1)


def written_at(loc: Path, root: Node) -> tuple[Path, int]:
    """Where a place of the model stands in the file: its keys as they are written there, and its line.

    The mapping form of a list (`context_attacks`) is addressed by index in the model and by key in the file.
    """
    path: Path = ()
    line, node = root.line, root
    for part in loc:
        if isinstance(node, Mapping) and (isinstance(part, str) or part < len(node.entries)):
            key = part if isinstance(part, str) else list(node.entries)[part]
            if key not in node.entries:
                break
            path, line, node = (*path, key), node.lines[key], node.entries[key]
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            path, node = (*path, part), node.items[part]
            line = node.line
        else:
            break
    return path, line


class _Reader:
    """Walks through a file beside the shape it should have.

    Args:
        whole: the JSON Schema of the file, in whose words problems are told.
    """

    def __init__(self, whole: _Schema) -> None:
        self._whole = whole

    def block(self, node: Node, block: type[Strict], path: Path, line: int, schema: _Schema) -> Iterator[Problem]:
        """What is wrong with a block; what only the block as a whole can tell is told when all else is right."""
        if not isinstance(node, Mapping):
            yield Problem(path, line, f"must be a mapping{_instead(node)}")
            return
        _spell(node, block)
        keys = keys_of(block)
        found = [
            Problem((*path, name), node.lines.get(name, line), _unknown(name, [*schema.get("properties", {})]))
            for name in node.entries
            if name not in keys and name != block.__struct_config__.tag_field
        ]
        for key in keys.values():
            found += self._key(key, node, path, line, _member(schema, key.name, self._whole))
        yield from found
        if not found:
            try:
                block.of(unfold(node))
            except ValueError as error:
                yield Problem(path, line, str(error))

    def _key(self, key: Key, block: Mapping, path: Path, line: int, schema: _Schema) -> Iterator[Problem]:
        node = block.entries.get(key.name)
        if node is None:
            if key.required:
                about = f": {key.about}" if key.about else ""
                yield Problem((*path, key.name), line, f"this key is missing{about}")
            return
        if isinstance(node, Scalar) and node.value is None and not key.required:
            return
        path, line = (*path, key.name), block.lines[key.name]
        if key.many:
            yield from self._list(key, node, path, line, schema)
        elif key.blocks:
            yield from self.block(node, key.blocks[0], path, line, schema)
        else:
            yield from self._value(node, key.kind, path, line, schema)

    def _list(self, key: Key, node: Node, path: Path, line: int, schema: _Schema) -> Iterator[Problem]:
        items: list[tuple[str | int, int, Node]] = []
        if isinstance(node, Sequence):
            items = [(index, item.line, item) for index, item in enumerate(node.items)]
        elif isinstance(node, Mapping) and (keyed := key.blocks[0].KEYED):
            items = [(name, node.lines[name], _entry(keyed, name, item)) for name, item in node.entries.items()]
        else:
            yield Problem(path, line, f"must be {_wanted(schema, self._whole)}{_instead(node)}")
        inner = _resolve(_list_of(schema, self._whole).get("items", {}), self._whole)
        for at, where, item in items:
            block = key.block(unfold(item))
            if block is None:
                yield Problem((*path, at), where, _no_such_kind(item, inner))
            else:
                chosen = inner if len(key.blocks) == 1 else _kind_of(block, inner, self._whole)
                yield from self.block(item, block, (*path, at), where, chosen)

    def _value(self, node: Node, kind: Any, path: Path, line: int, schema: _Schema) -> Iterator[Problem]:
        if _fits(node, kind):
            return
        inner = _inside(node, kind)
        if inner is None:
            options = [str(option) for option in _options(schema, self._whole)]
            raw = node.raw if isinstance(node, Scalar) else ""
            empty = isinstance(node, Sequence) and not node.items
            wanted = f"must be {_wanted(schema, self._whole)}{_instead(node)}{_guess(raw, options)}"
            yield Problem(path, line, "needs at least one entry" if empty else wanted)
        elif isinstance(node, Sequence):
            items = _resolve(_list_of(schema, self._whole).get("items", {}), self._whole)
            for index, item in enumerate(node.items):
                yield from self._value(item, inner, (*path, index), item.line, items)
        elif isinstance(node, Mapping):
            for name, item in node.entries.items():
                if isinstance(inner, type) and issubclass(inner, Strict):
                    about = _member(schema, name, self._whole)
                    yield from self.block(item, inner, (*path, name), node.lines[name], about)
                    continue
                yield from self._value(item, inner, (*path, name), node.lines[name], _member(schema, name, self._whole))


def _spell(node: Mapping, block: type[Strict]) -> None:
    """Put other spellings right in the tree, as reading does in the data."""
    keys, data = keys_of(block), unfold(node)
    for name, value in block._spelled(data).items():
        entry = node.entries.get(name)
        if not isinstance(entry, Scalar) or value is data.get(name) or name not in keys:
            continue
        if _converts(value, keys[name].kind):
            entry.value = value


def _fits(node: Node, kind: Any) -> bool:
    """Whether a value is of a type, as it stands or as it must have been meant; in the second case it is put right."""
    if _converts(unfold(node), kind):
        return True
    if not isinstance(node, Scalar) or node.value is None:
        return False
    meant = _SWITCHES.get(node.value.strip().lower(), node.raw) if isinstance(node.value, str) else node.raw
    if (isinstance(node.value, str) or node.plain) and _converts(meant, kind):
        node.value = meant
        return True
    return False


_SWITCHES = {"yes": True, "on": True, "y": True, "t": True, "no": False, "off": False, "n": False, "f": False}
"""What a text from a variable may say where true or false is wanted, beside those words."""


def _converts(value: Any, kind: Any) -> bool:
    try:
        convert(value, kind, strict=False)
    except ValueError:
        return False
    return True


def _inside(node: Node, kind: Any) -> Any:
    """The type of the entries, where a list or mapping stands and such a one is wanted; else None."""
    for member in members(kind):
        if isinstance(node, Sequence) and node.items and get_origin(member) is list:
            return get_args(member)[0]
        if isinstance(node, Mapping) and get_origin(member) is dict:
            return get_args(member)[1]
    return None


def _entry(keyed: str, name: str, node: Node) -> Node:
    """One entry of a list that is written as a mapping, as the list would have it."""
    if isinstance(node, Scalar) and (node.value is None or isinstance(node.value, bool)):
        node = Mapping(node.line)
    if not isinstance(node, Mapping):
        return node
    entries: dict[str, Node] = {keyed: Scalar(name, name, node.line), **node.entries}
    return Mapping(node.line, entries, {keyed: node.line, **node.lines})


def _kind_of(block: type[Strict], schema: _Schema, whole: _Schema) -> _Schema:
    """The schema of one of several kinds of block."""
    mapping = schema.get("discriminator", {}).get("mapping", {})
    return _resolve({"$ref": mapping.get(block.__struct_config__.tag, "")}, whole)


def _no_such_kind(node: Node, schema: _Schema) -> str:
    tags = sorted(schema.get("discriminator", {}).get("mapping", {}))
    given = node.entries.get("type") if isinstance(node, Mapping) else node
    raw = given.raw if isinstance(given, Scalar) else ""
    return f"'type' must be one of {', '.join(tags)}{_instead(given)}{_guess(raw, tags)}"


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
        if " or " in inner:
            return f"a list, each entry {inner}"
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
