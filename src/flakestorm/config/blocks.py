"""Which blocks a config file has: what was written down, as against what has a default."""

from __future__ import annotations

from pathlib import Path

from flakestorm.config.load import text_of
from flakestorm.config.marked import Mapping, parse

__all__ = ["blocks_in"]


def blocks_in(path: Path) -> frozenset[str]:
    """The keys at the top level of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    root = parse(text_of(path), file=str(path))
    return frozenset(root.entries) if isinstance(root, Mapping) else frozenset()
