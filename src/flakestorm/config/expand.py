"""`${VAR}` in values, and the rule that keys to other people's money never stand in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as Variables

from flakestorm.config.marked import Node, Scalar, Sequence
from flakestorm.config.problems import Path, Problem
from flakestorm.core.regex import later

__all__ = ["LITERAL_KEY", "expand", "literal_keys"]

LITERAL_KEY = 'Literal API keys are not allowed in config. Use: api_key: "${OPENAI_API_KEY}"'

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = later(rf"\$(?P<escaped>\$\{{{_NAME}\}})|\$\{{(?P<name>{_NAME})\}}")
_BARE = later(rf"\$(?P<escaped>\$\{{{_NAME}\}})|\$(?:\{{(?P<name>{_NAME})\}}|(?P<bare>{_NAME}))")
_ONLY = later(rf"\s*\$\{{{_NAME}\}}\s*")

# flakestorm 2.0 also expanded $VAR here, and left it alone when the variable was not set; so do we.
_BARE_ALLOWED = {("agent", "endpoint"), ("agent", "headers"), ("agent", "query_params")}


def literal_keys(root: Node) -> Iterator[Problem]:
    """Every `api_key` that is not exactly `${VAR}`, wherever it stands."""
    for path, node in _values(root, ()):
        if path and path[-1] == "api_key" and node.value not in (None, "") and not _ONLY.fullmatch(node.raw):
            yield Problem(path, node.line, LITERAL_KEY)


def expand(root: Node, variables: Variables[str, str]) -> Iterator[Problem]:
    """Replace `${VAR}` in every value by the variable's value, in place; `$${VAR}` becomes `${VAR}`.

    Yields a problem for every variable that is not set. Keys are left alone. `Scalar.raw` keeps what the file says,
    so that messages never show what a variable holds.
    """
    done: set[int] = set()  # aliases share nodes, and what a variable holds is not expanded again
    for path, node in _values(root, ()):
        if not isinstance(node.value, str) or "$" not in node.value or id(node) in done:
            continue
        done.add(id(node))
        missing: list[str] = []
        pattern = _BARE if path[:2] in _BARE_ALLOWED else _REFERENCE

        def substitute(found: re.Match[str], missing: list[str] = missing) -> str:
            if found["escaped"]:
                return found["escaped"]
            bare = found.groupdict().get("bare")
            if bare:
                return variables.get(bare, found[0])
            if found["name"] not in variables:
                missing.append(found["name"])
            return variables.get(found["name"], "")

        node.value = pattern.sub(substitute, node.value)
        for name in dict.fromkeys(missing):
            yield Problem(
                path,
                node.line,
                f"the environment variable {name} is not set; set it, or write $${{{name}}} for the text ${{{name}}}",
            )


def _values(node: Node, path: Path) -> Iterator[tuple[Path, Scalar]]:
    if isinstance(node, Scalar):
        yield path, node
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from _values(item, (*path, index))
    else:
        for key, value in node.entries.items():
            yield from _values(value, (*path, key))
