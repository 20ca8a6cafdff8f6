"""The smallest faults that still make a run fail in the same way.

First fewer: `reduce` halves what is suspected, and what remains is checked fault by fault, so that taking any one away
makes the failure go away. Then smaller, in the order of `faults/order.py`: a weaker mode, an earlier call, a shorter
delay. The failure is pinned, so a shrinker never slips to another bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from flakestorm.core.choices import Draw
from flakestorm.core.conversation import prompt_of, turns_of
from flakestorm.core.site import Site
from flakestorm.engine.asking import Asker
from flakestorm.engine.atoms import Asking, Atom, Atoms, Failure, Outcome, measure, planned_of
from flakestorm.faults.planned import Planned

__all__ = ["Cleared", "Fill", "reduce", "shorten", "smaller", "weaken"]

Fill: TypeAlias = Callable[[Atoms, Atoms], Atoms]
"""Gives a schedule that holds the first of these, and none of the second."""

SOONEST_MS = 100
"""Delays are not made shorter than this, and only fourfold: a race that is barely lost is won the next time."""
SEPARATORS = ("\n\n", "\n", ". ", " ")
"""Of paragraphs, lines, sentences and words."""
HALVES = 30
"""How many random parts are weighed against one another for each query."""
FEW = 30
"""So many pairs are halved by taking some of them; more, by taking some of their faults."""
ALONE = 40
"""How much likelier one fault is to be the cause than two together."""


class Cleared:
    """Faults that do not cause a failure, alone or two together, because a run with them did not show it."""

    def __init__(self) -> None:
        self._alone: set[Atom] = set()
        self._both: set[frozenset[Atom]] = set()

    def add(self, fired: Iterable[Atom]) -> None:
        """These took effect in a run that did not show the failure."""
        atoms = list(fired)
        self._alone.update(atoms)
        self._both.update(frozenset((a, b)) for n, a in enumerate(atoms) for b in atoms[:n])

    def few(self, atoms: Atoms) -> bool:
        """Whether hardly more than one single fault or pair of these may still be the cause."""
        alone, both = self.suspects(atoms)
        return len(alone) <= 1 and ALONE * len(alone) + len(both) <= ALONE + 2

    def suspects(self, atoms: Atoms) -> tuple[list[Atom], list[frozenset[Atom]]]:
        """What in these may still be the cause: single faults, and pairs."""
        listed = sorted(atoms)
        pairs = (frozenset((a, b)) for n, a in enumerate(listed) for b in listed[:n])
        return [a for a in listed if a not in self._alone], [pair for pair in pairs if pair not in self._both]


def reduce(
    asker: Asker,
    shown: Outcome,
    failure: Failure,
    draw: Draw,
    cleared: Cleared | None = None,
    *,
    fill: Fill | None = None,
    text: str | None = None,
) -> Asking[Outcome]:
    """A run that fails in this way with as few faults as can be: without any one of them it does not.

    Args:
        asker: asks the agent.
        shown: a run that fails so.
        failure: how.
        draw: makes the random choices.
        cleared: what is known not to cause it.
        fill: adds to a query what should make no difference, so that it answers more than it was asked for. What it
            says is checked without them; where they did make a difference, the cause that is found may be another one.
        text: the input, where it is not the prompt as it stands.
    """
    cleared = Cleared() if cleared is None else cleared
    for outcome in asker.runs:
        if outcome.judged and not outcome.shows(failure) and asker.steady and outcome.text == text:
            cleared.add(outcome.fired)
    whole = suspected = shown.fired
    while len(shown.fired) > 1:
        part = _half(suspected, cleared, draw) if len(suspected) > 1 else None
        if part is None and suspected == shown.fired:
            break
        if part is None:  # by itself
            (outcome,) = yield from asker.ask([suspected], failure, text=text)
            if outcome.shows(failure):
                shown = outcome
            else:  # what it was filled with has a part in it
                cleared.add(suspected if outcome.judged else outcome.fired)
            suspected = shown.fired
            continue
        nearly = len(part) <= 2 and cleared.few(suspected)
        filled = part if fill is None or nearly else fill(part, (whole | shown.fired) - part)
        (outcome,) = yield from asker.ask([filled], failure, text=text)
        if filled != part and not (part <= outcome.fired and (outcome.passed or outcome.shows(failure))):
            filled = part  # it got in the way
            (outcome,) = yield from asker.ask([part], failure, text=text)
        if outcome.shows(failure):
            shown, suspected = outcome, outcome.fired if filled == part else part
        else:
            cleared.add(part | outcome.fired if outcome.judged else outcome.fired)
    return (yield from _one_by_one(asker, shown, failure, cleared, text))


def _half(atoms: Atoms, cleared: Cleared, draw: Draw) -> Atoms | None:
    """A part that holds about half of what is suspected; None where nothing smaller is."""
    alone, both = cleared.suspects(atoms)
    if len(atoms) == 2:
        both = []  # the whole itself
    total = ALONE * len(alone) + len(both)
    if total == 0:
        return None
    if len(alone) + len(both) == 1:
        return frozenset(alone) if alone else both[0]
    listed, found, off = sorted(atoms), None, 2.0 * total
    for n in range(HALVES):
        if n % 2 and len(both) < FEW:  # of few, some
            suspects = [*(frozenset({atom}) for atom in alone), *both]
            part = frozenset(atom for each in draw.sample(suspects, len(suspects) // 2) for atom in each)
        else:
            keep = (0.3, 0.5, 0.6, 0.7, 0.8)[n // 2 % 5]
            part = frozenset(atom for atom in listed if draw.random() < keep)
        if not part or len(part) == len(atoms):
            continue
        weight = ALONE * sum(a in part for a in alone) + sum(pair <= part for pair in both)
        if weight and abs(weight - total / 2) < off:
            found, off = part, abs(weight - total / 2)
    if found is None:  # few suspects in a large set: one of them
        found = frozenset({alone[0]}) if alone else both[0]
    return found


def _one_by_one(asker: Asker, shown: Outcome, failure: Failure, cleared: Cleared, text: str | None) -> Asking[Outcome]:
    """Without any one of its faults, the run does not fail in this way.

    What larger runs of a steady agent cleared is asked once more: there, another fault may have hidden what it does. If
    it fails now, a second run tells that from chance. Of a moody agent each query is a further chance to be misled.
    """
    tried: set[Atom] = set()
    while len(shown.fired) > 1 and (left := [atom for atom in sorted(shown.fired) if atom not in tried]):
        part = shown.fired - {left[0]}
        tried.add(left[0])
        cleared_before = len(part) <= 2 and not any(cleared.suspects(part))
        if cleared_before and not asker.steady:
            asker.saved += 1
            continue
        (outcome,) = yield from asker.ask([part], failure, text=text)
        if outcome.shows(failure) and cleared_before:
            outcome = yield from asker.again(part, text=text)
        if outcome.shows(failure):
            shown = outcome
    return shown


def weaken(
    asker: Asker,
    shown: Outcome,
    failure: Failure,
    smaller: Callable[[Atom], Iterable[Atom]],
    settled: Callable[[Atoms], bool] = lambda _: False,
    fill: Fill | None = None,
) -> Asking[Outcome]:
    """A run that fails in this way with smaller faults, one changed at a time, until none can be made smaller.

    Args:
        asker: asks the agent.
        shown: a run that fails so.
        failure: how.
        smaller: gives the faults to try in place of one, the smallest first; see `smaller`.
        settled: whether a schedule need not be tried, because what it would show is known.
        fill: adds to a query what should make no difference; where it fails, it is made without.
    """
    at = 0
    while at < len(order := sorted(shown.fired)):
        atom = order[at]
        rest = shown.fired - {atom}
        for other in smaller(atom):
            if any(other.conflicts(each) for each in rest) or settled(rest | {other}):
                continue
            changed = rest | {other}
            filled = changed if fill is None else fill(changed, frozenset({atom}))
            (outcome,) = yield from asker.ask([filled], failure)
            if filled != changed and not (outcome.passed and changed <= outcome.fired):
                (outcome,) = yield from asker.ask([changed], failure)
            if outcome.shows(failure) and len(outcome.fired) <= len(shown.fired):
                shown, at = outcome, -1
                break
        at += 1
    return shown


def smaller(modes: Callable[[Site], Sequence[str]]) -> Callable[[Atom], list[Atom]]:
    """What to try in place of a fault, the smallest first: a weaker mode at the same call or an earlier one, the same
    mode at an earlier call, a quarter of its delay.

    Args:
        modes: gives the faults there are for a call.
    """

    def options(atom: Atom) -> list[Atom]:
        if atom.lasting:
            return []
        sites = [Site(atom.site.kind, atom.site.name, n) for n in range(1, atom.site.occurrence + 1)]
        found = {Atom(site, fault) for site in sites for fault in (*modes(site), atom.fault)}
        found |= {Atom(atom.site, fault) for fault in _sooner(planned_of(atom))}
        mine = measure([atom])
        return sorted((other for other in found if measure([other]) < mine), key=lambda other: measure([other]))

    return options


def _sooner(planned: Planned) -> list[str]:
    """The same fault with a shorter delay, down to what a client still notices."""
    from msgspec.structs import replace

    delay = getattr(planned.spec, "delay_ms", None)
    if planned.mode != "slow" or delay is None:
        return []
    steps = [delay >> n for n in (2, 4, 6, 8) if delay >> n >= SOONEST_MS]
    return [Planned(0, planned.family, replace(planned.spec, delay_ms=ms)).fault for ms in reversed(steps)]


def shorten(asker: Asker, shown: Outcome, failure: Failure, text: str) -> Asking[Outcome]:
    """A run that fails in this way with less of its input: turns of a conversation are left out, then of each turn
    paragraphs, then sentences, then words.

    Args:
        asker: asks the agent.
        shown: a run that fails so.
        failure: how.
        text: its input.
    """
    shown, turns = yield from _fewer(asker, shown, failure, list(turns_of(text)), prompt_of)
    for at in range(len(turns)):
        for separator in SEPARATORS:

            def whole(parts: Sequence[str], at: int = at, separator: str = separator) -> str:
                return prompt_of([*turns[:at], separator.join(parts), *turns[at + 1 :]])

            shown, parts = yield from _fewer(asker, shown, failure, turns[at].split(separator), whole)
            turns[at] = separator.join(parts)
    return shown


def _fewer(
    asker: Asker, shown: Outcome, failure: Failure, parts: list[str], whole: Callable[[Sequence[str]], str]
) -> Asking[tuple[Outcome, list[str]]]:
    """A run that fails in this way with fewer of these parts of its input, and those parts.

    Args:
        asker, shown, failure: see `shorten`.
        parts: what may be left out.
        whole: makes an input of some of them.
    """
    atoms, size = shown.fired, len(parts) // 2
    while size >= 1 and len(parts) > 1:
        at = 0
        while at < len(parts) and len(parts) > 1:
            fewer = parts[:at] + parts[at + size :]
            if not "".join(fewer).strip():
                at += size
                continue
            (outcome,) = yield from asker.ask([atoms], failure, text=whole(fewer))
            if outcome.shows(failure):
                parts, shown = fewer, outcome
            else:
                at += size
        size //= 2
    return shown, parts
