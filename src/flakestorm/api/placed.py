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
from flakestorm.faults.schedule import Planned

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
    scenario becomes a schedule; it is known again by what is wrong with it.
    """
    with placing(work.path):
        try:
            yield
        except ConfigError:
            raise
        except Misuse as error:
            if key := _fault_with(work.config, str(error)):
                raise ConfigError(str(error), key=key) from error
            raise


def placed(method: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
    """The method of a project, carried out within `telling`."""

    @wraps(method)
    def told(work: W, /, *args: P.args, **named: P.kwargs) -> T:
        with telling(work):
            return method(work, *args, **named)

    return told


def _fault_with(config: Config, problem: str) -> str | None:
    """The key of the first fault in a config that is refused in these words."""
    for place, fault in faults_in(config):
        try:
            Planned.of(fault).check()
        except Misuse as error:
            if str(error) == problem:
                return Problem(place, 0, problem).key
    return None
