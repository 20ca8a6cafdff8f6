"""Where invariants stand, and the schema files they name.

An invariant may be looked over long after its file was read: its JSON Schema, its regular expressions, its function. So
it remembers its file, its line and the folder that its own words are relative to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from flakestorm.config.invariants import Invariant, Origin
from flakestorm.config.marked import MAX_BYTES, Mapping, Node, Scalar, Sequence, parse
from flakestorm.config.problems import Path as Keys
from flakestorm.config.problems import Problem
from flakestorm.errors import ConfigError

__all__ = ["mark", "read_schemas"]

_LISTS: tuple[Keys, ...] = (("invariants",), ("contract", "invariants"))


def read_schemas(root: Node, folder: str | os.PathLike[str]) -> Iterator[Problem]:
    """Put the schema in the place of each file that is named as one, and say what is wrong with the files.

    Args:
        root: the tree of a configuration or a contract; changed in place.
        folder: what the names are relative to.
    """
    for path, rule in _rules(root):
        node = rule.entries.get("schema")
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value:
            continue
        file = Path(folder, node.value)
        try:
            if file.stat().st_size > MAX_BYTES:
                raise ConfigError(f"larger than {MAX_BYTES // 1024 // 1024} MB")
            read = parse(file.read_text("utf-8"), file=str(file))
            if not isinstance(read, Mapping):
                raise ConfigError("a JSON Schema is an object")
        except (OSError, ValueError, ConfigError) as error:  # not UTF-8; no name for a file
            why = error.strerror if isinstance(error, OSError) else str(error)
            yield Problem((*path, "schema"), node.line, f"the schema file {node.value!r} cannot be read: {why}")
            rule.entries["schema"] = Mapping(node.line)
        else:
            rule.entries["schema"] = read


def mark(root: Node, built: object, *, file: str | None, folder: str | os.PathLike[str]) -> None:
    """Tell the invariants of a model where in this tree they stand."""
    for path, rule in _rules(root):
        *keys, index = path
        holder = built
        for key in keys:
            holder = getattr(holder, str(key), None)
        if isinstance(holder, list) and isinstance(index, int) and isinstance(holder[index], Invariant):
            holder[index] = holder[index].at(Origin(str(folder), file, rule.lines.get("type", rule.line)))


def _rules(root: Node) -> Iterator[tuple[Keys, Mapping]]:
    for keys in _LISTS:
        node: Node | None = root
        for key in keys:
            node = node.entries.get(str(key)) if isinstance(node, Mapping) else None
        if isinstance(node, Sequence):
            yield from (((*keys, i), rule) for i, rule in enumerate(node.items) if isinstance(rule, Mapping))
