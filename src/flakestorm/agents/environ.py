"""This process's environment: variables set in it for agents that live in it, and what programs inherit of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["PRIVATE", "in_environ", "inherited"]

PRIVATE = ("FLAKESTORM_SIGNING_KEY", "FLAKESTORM_TRUST_KEY")
"""Variables that are for flakestorm alone: what is tested must not be able to sign what is said of it or seal tapes."""


def inherited() -> dict[str, str]:
    """What a launched program finds in its environment before anything is added: the caller's, but for `PRIVATE`."""
    return {name: value for name, value in os.environ.items() if name not in PRIVATE}


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
