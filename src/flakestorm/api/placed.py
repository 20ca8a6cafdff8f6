"""Complaints about a config that say where in it, whoever makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from flakestorm.config.access import faults_in
from flakestorm.config.load import placing
from flakestorm.config.model import Config
from flakestorm.config.problems import Problem
from flakestorm.errors import ConfigError, Misuse

__all__ = ["FromFile", "placed", "telling"]


class FromFile(Protocol):
    """A config, and the file it was read from."""

    @property
    def config(self) -> Config: ...

    @property
    def path(self) -> Path: ...


W = TypeVar("W", bound=FromFile)
P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def telling(work: FromFile) -> Iterator[None]:
    """While entered, what is wrong with this project's config is told with file, line and key.

    Whoever notices it knows the key, and `placing` finds the line. A fault that cannot be played is noticed where its
    scenario becomes a schedule, and the complaint says which one it is.
    """
    with placing(work.path):
        try:
            yield
        except ConfigError:
            raise
        except Misuse as error:
            if (key := _key_of(error.about, work.config)) is None:
                raise
            raise ConfigError(str(error), key=key) from error


def placed(method: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
    """The method of a project, carried out within `telling`."""

    @wraps(method)
    def told(work: W, /, *args: P.args, **named: P.kwargs) -> T:
        with telling(work):
            return method(work, *args, **named)

    return told


def _key_of(fault: object, config: Config) -> str | None:
    """Where in a config this very fault is planned; None if it is none of those."""
    return next((Problem(place, 0, "").key for place, planned in faults_in(config) if planned is fault), None)
