"""A synthetic agent for the search's own tests, driven without an event loop."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Ask, Asking, Atom, Atoms, Failure, Outcome

BROKEN = Failure("keeps its promise", "it did not")


def atom(text: str) -> Atom:
    """`search#2=error` as an atom of a tool."""
    site, _, fault = text.partition("=")
    return Atom(Site.parse(f"tool/{site}"), fault)


def atoms(*texts: str) -> Atoms:
    return frozenset(atom(text) for text in texts)


def agent(calls: Sequence[str], *bugs: Iterable[str], after: dict[str, str] | None = None) -> Callable[[Ask], Outcome]:
    """An agent that makes these calls, breaks its promise under any of these sets of faults, and after some faults
    makes a further call (`{"search#1=error": "backup#1"}`)."""
    planted = [atoms(*bug) for bug in bugs]

    def run(ask: Ask) -> Outcome:
        chosen = {each.site: each for each in ask.atoms}
        waiting = [Site.parse(f"tool/{call}") for call in calls]
        met: list[Site] = []
        fired: list[tuple[Atom, Site]] = []
        while waiting:
            site = waiting.pop(0)
            met.append(site)
            lasting = next((a for a in ask.atoms if a.lasting and a.site[:2] == site[:2]), None)
            hit = lasting or chosen.get(site)
            if hit is not None:
                fired.append((hit, site))
                further = (after or {}).get(f"{site.name}#{site.occurrence}={hit.fault}")
                if further:
                    waiting.insert(0, Site.parse(f"tool/{further}"))
        real = {Atom(site, hit.fault) for hit, site in fired}
        failures = (BROKEN,) if any(bug <= real for bug in planted) else ()
        return Outcome(ask.atoms, tuple(fired), tuple(met), failures, run="r-0001", text=ask.text)

    return run


def retrying(calls: Sequence[str], breaks: str) -> Callable[[Ask], Outcome]:
    """An agent that makes these calls, by name, and makes one again that was refused (`timeout`). With `llm#2=empty` it
    breaks its promise where that is done to the call that is its second one, however often others were refused."""

    def run(ask: Ask) -> Outcome:
        chosen = {each.site: each for each in ask.atoms}
        steps, made = Counter[str](), Counter[str]()
        met: list[Site] = []
        fired: list[tuple[Atom, Site]] = []
        shown: set[str] = set()
        for name in calls:
            steps[name] += 1
            refused = True
            while refused:
                made[name] += 1
                met.append(Site("tool", name, made[name]))
                hit = chosen.get(met[-1])
                refused = hit is not None and hit.fault == "timeout"
                if hit is not None:
                    fired.append((hit, met[-1]))
                    shown.add(f"{name}#{steps[name]}={hit.fault}")
        failures = (BROKEN,) if breaks in shown or not breaks else ()
        return Outcome(ask.atoms, tuple(fired), tuple(met), failures, run="r-0001", text=ask.text)

    return run


def drive(steps: Asking[Any], run: Callable[[Ask], Outcome], *, limit: int = 2000) -> tuple[Any, int]:
    """What a search returns, and how many runs it asked for."""
    runs = 0
    try:
        asks = next(steps)
        while True:
            runs += len(asks)
            assert runs <= limit, "it never ends"
            asks = steps.send([run(ask) for ask in asks])
    except StopIteration as stop:
        return stop.value, runs
