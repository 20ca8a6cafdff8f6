"""One module per target. Each has `check(data)`, which raises where what is promised does not hold."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

__all__ = ["TARGETS", "check_of"]

TARGETS = (
    "wires", "requests", "sse", "encoding", "tape", "config", "matcher", "mcp", "mutations", "scanner", "vcr", "otel",
    "langfuse", "route", "gateway",
)  # fmt: skip
"""Names of all targets."""


def check_of(name: str) -> Callable[[bytes], None]:
    """The function of a target."""
    check: Callable[[bytes], None] = import_module(f"fuzz.targets.{name}").check
    return check
