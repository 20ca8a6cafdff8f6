"""How a run is made again: the command line that a report names."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from flakestorm.core.conversation import prompt_of, turns_of
from flakestorm.core.ledger import Ledger
from flakestorm.engine.plan import Trial
from flakestorm.faults.schedule import Schedule

if TYPE_CHECKING:
    from flakestorm.api.carrying import Work

__all__ = ["LONGEST_ARGUMENT", "reproduce_by"]

LONGEST_ARGUMENT = 2_000
"""Characters of an input that a command line repeats; of longer ones it names the mutation."""


def reproduce_by(work: Work, seed: int) -> Callable[[Trial, Schedule, Ledger], str]:
    """Gives the command line that makes a run of this project again."""
    return lambda trial, schedule, ledger: _reproduce(work, seed, trial, schedule, ledger)


def _reproduce(work: Work, seed: int, trial: Trial, schedule: Schedule, ledger: Ledger) -> str:
    """The command line that makes this run again: its prompt, with exactly the faults that fired."""
    written = work.config.written_prompts
    words = [*(work.again or ("flakestorm", "run", "-c", str(work.path)))]
    mutation = trial.mutation
    unwieldy = len(trial.text) > LONGEST_ARGUMENT or not trial.text.isprintable()  # as a conversation never is
    if mutation is not None and mutation.number and (mutation.change or unwieldy):
        words += ["--seed", str(seed), "--prompt", str(trial.prompt), "--mutate", f"{mutation.type}#{mutation.number}"]
    elif trial.prompt < len(written) and prompt_of(written[trial.prompt]) == trial.text:
        words += ["--prompt", str(trial.prompt)]
    else:
        words += [word for turn in turns_of(trial.text) for word in ("--input", turn)]
    fired = [firing for firing in ledger.fired if firing.fault < len(schedule.planned)]  # not what a stage within did
    for firing in sorted(fired, key=lambda firing: (firing.fault, firing.site)):  # the order is the nesting
        planned = schedule.planned[firing.fault].at(firing.site, ledger.drawn.get((firing.fault, firing.site)))
        words += ["--inject", f"{firing.site.exact}={planned.fault}"]
    return shlex.join(words)
