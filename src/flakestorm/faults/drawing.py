"""The random choices of a fault, and how a command line names them so that another run makes the same ones.

Choices are keyed by (seed, scenario, prompt, trial, site, fault). A run that is made again by a command line is of
another scenario and is its first trial, so a lie that was told in trial 3 would be another lie there. A fault's line
therefore says whose choices it is to make: `wrong_value,draws=42/search-lies/0/3/1` are those of seed 42, scenario
`search-lies`, prompt 0, trial 3 and the scenario's fault 1. It is said only of faults that did choose something.
"""

from __future__ import annotations

from collections.abc import Callable

from flakestorm.core.choices import Choices
from flakestorm.core.site import Site
from flakestorm.errors import Misuse

__all__ = ["Noticed", "again", "told"]

_CANARY = "canary"  # tells runs apart and changes nothing of what an instruction says


class Noticed(Choices):
    """Choices that say when one of them is made.

    Args:
        seed, scope: as of `Choices`.
        made: called for each choice but those that have one outcome, and a canary's.
    """

    __slots__ = ("_made",)

    def __init__(self, seed: int, *scope: object, made: Callable[[], None]) -> None:
        super().__init__(seed, *scope)
        self._made = made

    def within(self, *scope: object) -> Choices:
        """The same choices with a longer scope."""
        return Noticed(self.seed, *self.scope, *scope, made=self._made)

    def digest(self, *purpose: object) -> bytes:
        """As of `Choices`."""
        if purpose[:1] != (_CANARY,):
            self._made()
        return super().digest(*purpose)

    def below(self, n: int, *purpose: object) -> int:
        """As of `Choices`."""
        return 0 if n == 1 else super().below(n, *purpose)


def told(choices: Choices, fault: int) -> str:
    """Whose choices these are, as the setting `draws` has it; empty where they are not those of a run of a plan.

    Args:
        choices: scoped to a run: scenario, prompt, trial.
        fault: the fault's index in the scenario.
    """
    return "/".join((str(choices.seed), *choices.scope, str(fault))) if len(choices.scope) == 3 else ""


def again(text: str, site: Site) -> Choices:
    """The choices that the setting `draws` names, of a fault at this site.

    Raises:
        Misuse: it names none.
    """
    seed, _, rest = text.partition("/")
    words = rest.rsplit("/", 3)  # a scenario's name may hold any character
    if len(words) != 4 or not all(word.isdecimal() for word in (seed, *words[1:])):
        raise Misuse(f"draws={text!r} names no choices of an earlier run; write SEED/SCENARIO/PROMPT/TRIAL/FAULT")
    scenario, prompt, trial, fault = words
    return Choices(int(seed), scenario, prompt, trial, "fault", fault, site)
