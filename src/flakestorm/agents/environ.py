"""Variables in this process's own environment, for agents that live in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["in_environ"]


@contextmanager
def in_environ(variables: Mapping[str, str]) -> Iterator[None]:
    """While entered, these variables are set; then they are what they were before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
