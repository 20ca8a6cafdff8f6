"""Rules written as code: `check` calls a function of the user's with the run.

The function is found as the agent's own code is, in the config's folder, and gets the run as `RunView`: `run.input`,
`run.output`, `run.error`, `run.calls(tool="charge_card")`, `run.exchanges`. It returns True, False or a `Verdict`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import Demand, RunView, built_in
from flakestorm.core.loading import importing_from, load_object
from flakestorm.core.verdict import Verdict
from flakestorm.errors import AgentUnreachable, Misuse

__all__ = ["check"]

_loaded: dict[tuple[str, str], Callable[[RunView], Any]] = {}


def _vet(spec: Invariant) -> None:
    """Import the function anew: the file may have changed since another campaign of this process used it."""
    _loaded[_key(spec)] = _load(spec)


def _demand(spec: Invariant) -> Demand:
    """Nobody knows what a function asks of an output. Where there is none, a fail is one and a pass proves nothing,
    negated or not (negation turns the demand round once more)."""
    return "requires" if spec.negate else "forbids"


@built_in("check", _demand, needs=("function",), evidence="both", vet=_vet)
def check(spec: Invariant, run: RunView) -> Verdict:
    """What the function `module:name` says about the run: True or False, or a `Verdict`.

    It is called in any case, even if the agent gave no output: `run.error` says so then, and a pass is inconclusive. An
    exception of its own is inconclusive too.
    """
    function = _loaded.get(_key(spec)) or _load(spec)
    with importing_from(Path(spec.origin.folder)):  # functions import too
        said: Verdict = function(run)  # anything else is answered by the matrix
    return said


def _key(spec: Invariant) -> tuple[str, str]:
    return spec.origin.folder, spec.function or ""


def _load(spec: Invariant) -> Callable[[RunView], Any]:
    folder = Path(spec.origin.folder)
    try:
        with importing_from(folder):
            found = load_object(spec.function or "", folder=folder, key="function")
    except AgentUnreachable as error:
        raise Misuse(str(error)) from error
    if not callable(found):
        raise Misuse(f"function: {spec.function!r} is a {type(found).__name__}; it must be a function of the run")
    if inspect.iscoroutinefunction(found):
        raise Misuse(
            f"function: {spec.function!r} is async; a check is an ordinary function, called when the run is over"
        )
    _takes_one(spec, found)
    made: Callable[[RunView], Any] = found
    return made


def _takes_one(spec: Invariant, function: Any) -> None:
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise Misuse(f"function: {spec.function!r} must take the run and nothing else: {error}") from error
    except ValueError:  # built in, without a signature
        return
