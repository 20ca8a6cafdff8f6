"""One module per target. Each has `check(data)`, which raises where what is promised does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages

__all__ = ["TARGETS", "check_of", "late"]

TARGETS = (
    "wires", "requests", "sse", "encoding", "tape", "config", "matcher", "mcp", "mutations", "scanner", "vcr", "otel",
    "langfuse", "route", "gateway",
)  # fmt: skip
"""Names of all targets."""


def check_of(name: str) -> Callable[[bytes], None]:
    """The function of a target."""
    check: Callable[[bytes], None] = import_module(f"fuzz.targets.{name}").check
    return check


_ROOMS = {
    "wires": ("wire",), "requests": ("wire",), "mutations": ("mutations",), "vcr": ("importers", "wire"),
    "otel": ("importers", "wire"), "langfuse": ("importers", "wire"),
}  # fmt: skip


def late(name: str) -> Iterator[str]:
    """Modules that a target imports while it runs: imported beforehand, they are watched by the fuzzer too."""
    for room in _ROOMS.get(name, ()):
        package = import_module(f"flakestorm.{room}")
        yield from (found.name for found in walk_packages(package.__path__, f"{package.__name__}."))
