"""YAML with line numbers, for input that is not trusted.

`parse` turns text into a tree whose nodes remember their lines. It builds the tree from the parser's events itself,
because that is the one place where duplicate keys, the depth of nesting and the true size behind aliases can all be
seen. An alias shares the node it names, so a file that would unfold to billions of values (a "billion laughs" file)
is refused after counting, without unfolding it. Only plain data is understood: no tag can make an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from msgspec import Struct, field

from flakestorm.core.regex import postponed
from flakestorm.errors import ConfigError

with postponed("yaml"):
    import yaml
    from yaml.constructor import SafeConstructor
    from yaml.resolver import Resolver

__all__ = ["MAX_BYTES", "Mapping", "Node", "Scalar", "Sequence", "parse", "unfold"]

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 100
MAX_VALUES = 1_000_000
_MOST_BITS = 1024

_TAG = "tag:yaml.org,2002:"
_SCALARS = {_TAG + kind for kind in ("null", "bool", "int", "float", "str", "timestamp", "value")}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's parser where PyYAML was built with it


class Scalar(Struct):
    """One value: text, number, truth value or null.

    Args:
        value: as YAML reads it; dates stay text.
        raw: as it is written, without quotes.
        line: from 1.
        plain: whether it is written without quotes.
    """

    value: str | int | float | bool | None
    raw: str
    line: int
    plain: bool = False
    size: int = 1


class Sequence(Struct):
    """A list."""

    line: int
    items: list[Node] = field(default_factory=list)
    size: int = 1


class Mapping(Struct):
    """A mapping. Keys are text as written, each with the line it stands on."""

    line: int
    entries: dict[str, Node] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    size: int = 1


Node: TypeAlias = Scalar | Sequence | Mapping


def parse(text: str, *, file: str | None = None) -> Node:
    """The tree of a YAML document.

    Raises:
        ConfigError: it is not one YAML document, has a duplicate key, or is too large, too deep or of unknown tags;
            names file and line.
    """
    return _Builder(text, file).document()


def _bounded(number: int) -> int:
    """The number, if it is one that can be written again: Python spells no integer of more than 4,300 digits."""
    if number.bit_length() > _MOST_BITS:
        raise ValueError(f"a number of more than {_MOST_BITS} bits")
    return number


def unfold(node: Node) -> Any:
    """The tree as dicts, lists and values. Aliased parts are shared, so treat the result as read-only."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [unfold(item) for item in node.items]
    return {key: unfold(value) for key, value in node.entries.items()}


class _Builder:
    def __init__(self, text: str, file: str | None) -> None:
        self._text, self._file = text, file
        self._anchors: dict[str | None, Node | None] = {}  # None as value: still being built
        self._path: list[str] = []
        self._resolver, self._constructor = cast(Any, Resolver()), SafeConstructor()
        self._events = self._read()

    def document(self) -> Node:
        try:
            if len(self._text.encode()) > MAX_BYTES:
                raise self._wrong(f"larger than {MAX_BYTES // 1024 // 1024} MB", None)
        except UnicodeEncodeError as error:
            raise self._wrong("holds characters that are not Unicode text", self._line(error.start)) from None
        first = next(self._events, None)
        if first is None:
            raise self._wrong("the file is empty; 'flakestorm init' writes a starter", None)
        node = self._node(first, 1)
        extra = next(self._events, None)
        if extra is not None:
            raise self._wrong("a second document starts here; keep one document per file", extra.start_mark.line + 1)
        return node

    def _node(self, event: Any, depth: int) -> Node:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, line)
        if depth > MAX_DEPTH:
            raise self._wrong(f"nested more than {MAX_DEPTH} levels deep", line)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, line, depth)
        else:
            node = self._mapping(event, line, depth)
        if node.size > MAX_VALUES:
            raise self._wrong(f"holds more than {MAX_VALUES:,} values, aliases counted as often as they are used", line)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, name: str | None, line: int) -> Node:
        if name not in self._anchors:
            raise self._wrong(
                f"the alias *{name} names no anchor above it; write &{name} before the value it means", line
            )
        node = self._anchors[name]
        if node is None:
            raise self._wrong(f"the value of the anchor &{name} contains itself", line)
        return node

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Scalar:
        tag, raw = event.tag, event.value
        if tag is None or tag == "!":
            tag = self._resolver.resolve(yaml.ScalarNode, raw, event.implicit)
        if tag not in _SCALARS and tag != _TAG + "merge":
            raise self._wrong(f"the tag {_short(tag)} is not allowed here; write plain values", line)
        plain = not event.style  # None or '', depending on the parser
        kind = tag.removeprefix(_TAG)
        try:
            return Scalar(self._value(kind, raw), raw, line, plain)
        except (ValueError, KeyError, IndexError, OverflowError):
            raise self._wrong(f"{_clip(raw)} is not a value of the type {kind}", line) from None

    def _value(self, kind: str, raw: str) -> str | int | float | bool | None:
        node = yaml.ScalarNode(_TAG + kind, raw)
        if kind == "null":
            return None
        if kind == "bool":
            return bool(self._constructor.construct_yaml_bool(node))
        if kind == "int":
            return _bounded(int(self._constructor.construct_yaml_int(node)))
        if kind == "float":
            return float(self._constructor.construct_yaml_float(node))
        return raw

    def _sequence(self, event: yaml.SequenceStartEvent, line: int, depth: int) -> Sequence:
        self._only("seq", event.tag, line)
        node = Sequence(line)
        for inner in self._events:
            if isinstance(inner, yaml.SequenceEndEvent):
                break
            self._path.append(str(len(node.items)))
            item = self._node(inner, depth + 1)
            self._path.pop()
            node.items.append(item)
            node.size += item.size
        return node

    def _mapping(self, event: yaml.MappingStartEvent, line: int, depth: int) -> Mapping:
        self._only("map", event.tag, line)
        node = Mapping(line)
        merges: list[tuple[Node, int]] = []
        for inner in self._events:
            if isinstance(inner, yaml.MappingEndEvent):
                break
            at = inner.start_mark.line + 1
            key = self._key(inner, at)
            self._path.append(key)
            value = self._node(next(self._events), depth + 1)
            self._path.pop()
            node.size += value.size
            if key == "<<" and isinstance(inner, yaml.ScalarEvent) and not inner.style:
                merges.append((value, at))
                continue
            if key in node.entries:
                self._path.append(key)
                raise self._wrong(f"duplicate key; it is already set on line {node.lines[key]}", at)
            node.entries[key], node.lines[key] = value, at
        for merged, at in merges:
            self._merge(node, merged, at)
        return node

    def _key(self, event: Any, line: int) -> str:
        if isinstance(event, yaml.AliasEvent):
            named = self._alias(event.anchor, line)
            if isinstance(named, Scalar):
                return named.raw
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor is not None:
                self._anchors[event.anchor] = Scalar(event.value, event.value, line)
            return str(event.value)
        raise self._wrong('a key must be text, not a list or a mapping (quote braces, as in "{prompt}")', line)

    def _merge(self, node: Mapping, value: Node, line: int) -> None:
        """`<<: *base` or `<<: [*a, *b]`: keys that are not set take their value from there."""
        for source in value.items if isinstance(value, Sequence) else [value]:
            if not isinstance(source, Mapping):
                raise self._wrong("'<<' takes a mapping or a list of mappings, e.g. <<: *base", line)
            for key, inner in source.entries.items():
                if key not in node.entries:
                    node.entries[key], node.lines[key] = inner, source.lines[key]

    def _only(self, kind: str, tag: str | None, line: int) -> None:
        if tag not in (None, "!", _TAG + kind):
            raise self._wrong(f"the tag {_short(tag or '')} is not allowed here; write plain values", line)

    def _read(self) -> Iterator[Any]:
        """The events that carry content; whatever the parser raises is said in our words."""
        try:
            for event in yaml.parse(self._text, Loader=_LOADER):
                if not isinstance(
                    event,
                    (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent),
                ):
                    yield event
        except yaml.MarkedYAMLError as error:
            ended = "end of stream" in str(error.problem)  # then what is not closed is of more help than the end
            mark = error.context_mark if ended and error.context_mark else error.problem_mark
            line = None if mark is None else mark.line + 1
            raise self._wrong(f"not valid YAML: {self._reason(error, line)}", line) from None
        except yaml.reader.ReaderError as error:
            character = error.character if isinstance(error.character, int) else ord(str(error.character)[:1] or "?")
            where = self._text.find(chr(character))
            raise self._wrong(
                f"not valid YAML: the control character U+{character:04X} is not allowed; in a quoted text write "
                f"\\x{character:02x}",
                self._line(where) if where >= 0 else None,
            ) from None

    def _reason(self, error: yaml.MarkedYAMLError, line: int | None) -> str:
        problem = " ".join(str(part) for part in (error.problem, error.context) if part)
        lines = self._text.splitlines()
        near = lines[line - 1] if line is not None and line <= len(lines) else ""
        if "\t" in near[: len(near) - len(near.lstrip())]:
            return "this line is indented with a tab; indent with spaces"
        if "mapping values are not allowed" in problem:
            return f"{problem}; a text that holds ': ' needs quotes"
        if "flow mapping" in problem and "{" in near.partition("{")[2]:
            return f'{problem}; inside braces, quote a text that holds a brace, as in "${{VAR}}"'
        return problem

    def _line(self, position: int) -> int:
        return self._text.count("\n", 0, position) + 1

    def _wrong(self, message: str, line: int | None) -> ConfigError:
        return ConfigError(message, file=self._file, line=line, key=_clip(".".join(self._path))[1:-1] or None)


def _short(tag: str) -> str:
    return _clip(tag.replace(_TAG, "!!"))


def _clip(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
