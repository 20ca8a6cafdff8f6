"""YAML from strangers, as plain data and within bounds.

PyYAML's safe loader runs no code, but three kinds of files still bring a program down: deep nesting (the composer
recurses in C and overflows the stack), millions of tiny values, and a few aliases that unfold to billions of values.
All three are refused here before any value is made.

What counts as a value follows JSON: dates and `1:30` stay text. Of the tags that name Python or Ruby types, those that
cassettes really carry (texts, tuples, byte buffers, old request records) are read as the plain data inside them; every
other one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

__all__ = ["MAX_DEPTH", "MAX_UNFOLDED", "MAX_VALUES", "load_yaml"]

MAX_DEPTH = 200
"""Levels of nesting."""
MAX_VALUES = 1_000_000
"""Values as written, keys included; a million take about 300 MB while they are read."""
MAX_UNFOLDED = 64 * 2**20
"""Values plus characters, aliases counted as often as they are used."""

_TAG = "tag:yaml.org,2002:"
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's parser where PyYAML was built with it


class _TooMuch(ValueError):
    """The document breaks a bound; the message is the reason."""


class _Loader(_Base):  # type: ignore[misc]  # chosen at run time
    """The safe loader that counts while it composes, and makes nothing but plain values."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._depth = self._values = 0

    # The composer calls these two around every node, which makes them the place to count.

    def descend_resolver(self, current_node: object, current_index: object) -> None:
        self._depth += 1
        self._values += 1
        if self._depth > MAX_DEPTH:
            raise _TooMuch(f"it is nested more than {MAX_DEPTH} levels deep")
        if self._values > MAX_VALUES:
            raise _TooMuch(f"it holds more than {MAX_VALUES:,} values")

    def ascend_resolver(self) -> None:
        self._depth -= 1


def load_yaml(data: bytes) -> Any:
    """The one document in these bytes, as dicts, lists, texts, bytes, numbers, truth values and None.

    Aliased parts are shared, so treat the result as read-only.

    Raises:
        ValueError: it is not YAML, is out of bounds, or uses a tag that is not read; the message is one line.
    """
    try:
        loader = _Loader(data)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_unfolded(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(_reason(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _check_unfolded(root: yaml.Node) -> None:
    """Add up what every node is worth, each once, and refuse what would unfold to too much or to no end."""
    worth: dict[int, int] = {}
    under_way: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        at = id(node)
        if at in worth:
            stack.pop()
            continue
        inner = _children(node)
        if at not in under_way:
            under_way.add(at)
            stack += [child for child in inner if id(child) not in worth]
            if any(id(child) in under_way for child in inner):
                raise _TooMuch(f"line {node.start_mark.line + 1}: the value of an anchor contains itself")
            continue
        under_way.discard(at)
        worth[at] = 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else sum(worth[id(c)] for c in inner))
        if worth[at] > MAX_UNFOLDED:
            raise _TooMuch(f"line {node.start_mark.line + 1}: its aliases unfold to more than {MAX_UNFOLDED >> 20} MB")
        stack.pop()


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _reason(error: yaml.YAMLError) -> str:
    """What PyYAML says over several lines, as one."""
    if isinstance(error, yaml.constructor.ConstructorError) and "could not determine a constructor" in str(error):
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        tag = str(error.problem).rpartition("tag ")[2].replace(_TAG, "!!")
        return f"line {line}: the YAML tag {tag[:80]} stands for an object of some program, which is not read"
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        return f"it is not valid YAML: {where}{error.problem or error.context}"
    return f"it is not valid YAML: {' '.join(str(error).split())}"


def _text(loader: Any, node: yaml.Node) -> Any:
    return loader.construct_scalar(node)


def _value(kind: Any) -> Callable[[Any, yaml.Node], Any]:
    """A number or truth value, except base-60 numbers (`1:30`): nobody means them, and long ones take forever."""

    def construct(loader: Any, node: yaml.Node) -> Any:
        text = loader.construct_scalar(node)
        if ":" in text:
            return text
        try:
            return kind(loader, node)
        except (ValueError, KeyError, IndexError, OverflowError):
            wrong = f"{text[:40]!r} is not of the type {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(problem=wrong, problem_mark=node.start_mark) from None

    return construct


def _list(loader: Any, node: yaml.Node) -> Any:
    return loader.construct_sequence(node, deep=True)


def _dict(loader: Any, node: yaml.Node) -> Any:
    return loader.construct_mapping(node, deep=True)


def _first_argument(loader: Any, node: yaml.Node) -> Any:
    """What a pickled container was made of: `[content]`, or a mapping with `args` or `state`."""
    if isinstance(node, yaml.MappingNode):
        whole = _dict(loader, node)
        content = whole.get("args") or whole.get("state")
    else:
        content = _list(loader, node)
    return content[0] if isinstance(content, list) and content else None


_safe = yaml.constructor.SafeConstructor
for _name, _construct in {
    _TAG + "timestamp": _text,
    _TAG + "value": _text,  # a plain `=`
    _TAG + "merge": _text,  # a plain `<<` that is no key
    _TAG + "bool": _value(_safe.construct_yaml_bool),
    _TAG + "int": _value(_safe.construct_yaml_int),
    _TAG + "float": _value(_safe.construct_yaml_float),
    _TAG + "set": _dict,
    _TAG + "python/str": _text,
    _TAG + "python/unicode": _text,
    _TAG + "python/tuple": _list,
    _TAG + "python/object/new:_io.BytesIO": _first_argument,
    _TAG + "python/object/apply:builtins.iter": _first_argument,
    _TAG + "python/object/apply:__builtin__.frozenset": _first_argument,
    _TAG + "python/object:vcr.request.Request": _dict,
    "!binary": _safe.construct_yaml_binary,  # Ruby
}.items():
    _Loader.add_constructor(_name, _construct)
