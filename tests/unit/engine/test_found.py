from dataclasses import replace

import pytest

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Ask, Atom, Failure, Outcome
from flakestorm.engine.found import Findings, Found, is_later
from search_support import BROKEN, atoms, retrying


def asked(*faults: str) -> Outcome:
    return replace(retrying(["llm", "search", "llm", "pay"], "")(Ask(atoms(*faults))), run="+".join(faults))


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        (["llm#1=timeout", "llm#3=empty"], ["llm#2=empty"]),
        (["llm#2=timeout", "llm#3=empty"], ["llm#2=empty"]),
        (["llm#1=timeout", "llm#2=empty"], ["llm#1=empty"]),
        (["llm#1=timeout", "llm#2=timeout", "llm#4=empty"], ["llm#2=empty"]),
        (["llm#1=timeout", "search#1=error", "llm#3=empty"], ["search#1=error", "llm#2=empty"]),
    ],
)
def test_a_fault_behind_a_retry_is_that_of_the_call_before(later: list[str], earlier: list[str]) -> None:
    assert is_later(asked(*later), asked(*earlier))
    assert not is_later(asked(*earlier), asked(*later))


@pytest.mark.parametrize(
    ("faults", "earlier", "why"),
    [
        (["llm#1=timeout", "llm#3=empty"], ["llm#1=empty"], "the call before is another one"),
        (["llm#1=timeout", "llm#3=garbage"], ["llm#2=empty"], "another fault"),
        (["llm#1=timeout", "llm#3=empty"], ["pay#1=empty"], "another tool"),
        (["search#1=timeout", "llm#2=empty"], ["llm#2=empty"], "what was made again is none of these calls"),
        (["llm#1=error", "llm#2=empty"], ["llm#1=empty"], "nothing was made again"),
        (["llm#1=timeout", "llm#3=empty"], ["llm#1=timeout", "llm#3=empty"], "the same"),
        (["llm#2=empty", "llm#1=timeout"], [], "nothing was broken"),
    ],
)
def test_all_else_is_a_bug_of_its_own(faults: list[str], earlier: list[str], why: str) -> None:
    assert not is_later(asked(*faults), asked(*earlier)), why


def test_calls_that_differ_on_the_way_do_not_make_one_bug() -> None:
    """Refused, the agent asks another tool before it asks again."""
    detour = asked("llm#1=timeout", "llm#3=empty")
    sites = list(detour.sites)
    sites.insert(1, Site("tool", "backup", 1))
    assert not is_later(replace(detour, sites=tuple(sites)), asked("llm#2=empty"))


def test_faults_that_last_are_not_counted_away() -> None:
    lasting = Atom(Site("tool", "llm", 1), "timeout", lasting=True)
    shown = asked("llm#1=timeout", "llm#3=empty")
    assert not is_later(
        replace(shown, firings=((lasting, shown.firings[0][1]), shown.firings[1])), asked("llm#2=empty")
    )


def found(outcome: Outcome, failure: Failure = BROKEN, text: str | None = None) -> Found:
    return Found(tuple(each for each, _ in outcome.firings), failure, outcome.run, text=text)


SMALL, LATER = asked("llm#2=empty"), asked("llm#1=timeout", "llm#3=empty")


@pytest.mark.parametrize("order", [(SMALL, LATER), (LATER, SMALL)])
def test_one_bug_is_told_once_whichever_was_found_first(order: tuple[Outcome, Outcome]) -> None:
    findings = Findings()
    gone = [findings.take(found(outcome), outcome) for outcome in order]
    (told,) = findings
    assert (told.run, told.schedule) == ("llm#2=empty", found(SMALL).schedule)
    assert told.also == (found(LATER).schedule,)
    assert gone == ([[], []] if order[0] is SMALL else [[], [0]])


def test_another_failure_or_input_is_another_bug() -> None:
    other = Failure("another promise", "it did not")
    for differs in (found(LATER, other), found(LATER, text="hello")):
        findings = Findings()
        findings.take(found(SMALL), SMALL)
        findings.take(differs, LATER)
        assert len(findings) == 2


def test_what_is_known_of_no_run_is_left_alone() -> None:
    findings = Findings()
    findings.append(found(SMALL))
    findings.take(found(LATER), LATER)
    assert len(findings) == 2


def test_what_is_found_again_is_told_of_once() -> None:
    findings = Findings()
    for outcome in (SMALL, LATER, SMALL, LATER):
        findings.take(found(outcome), outcome)
    stronger = (found(asked("llm#2=garbage")).schedule,)
    findings.take(replace(found(LATER), also=stronger), LATER)
    (told,) = findings
    assert told.also == (found(LATER).schedule, *stronger)
    assert [each.schedule for each in findings.every()] == [found(SMALL).schedule, found(LATER).schedule]


def test_what_was_chance_takes_with_it_what_it_tells_of() -> None:
    findings = Findings()
    for outcome in (LATER, SMALL, asked("pay#1=error")):
        findings.take(found(outcome), outcome)
    assert findings.drop(0) == [found(SMALL).schedule, found(LATER).schedule]
    assert [each.run for each in findings.every()] == ["pay#1=error"]
