import random
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Ask, Outcome
from flakestorm.engine.explore import Search
from search_support import BROKEN, agent, atoms, drive, retrying

CALLS = [f"t{n}#1" for n in range(6)]


def searched(run, faults=("error", "timeout"), lasting=(), seed: int = 1) -> tuple[Search, int]:
    search = Search(lambda _: faults, lambda _: lasting, random.Random(seed))
    _, runs = drive(search.steps(), run)
    return search, runs


def schedules(search: Search) -> set[frozenset]:
    return {frozenset(found.schedule) for found in search.findings}


def test_a_healthy_agent_gets_a_certificate() -> None:
    search, runs = searched(agent(CALLS))
    assert not search.findings
    assert search.finished
    assert search.coverage.complete
    assert search.coverage.all_pairs == 6 * 5 // 2 * 4
    assert runs < 30


def test_single_faults_and_pairs_are_found_and_nothing_else() -> None:
    bugs = [("t1#1=error",), ("t2#1=timeout", "t5#1=error")]
    search, _ = searched(agent(CALLS, *bugs))
    assert schedules(search) == {atoms(*bug) for bug in bugs}
    assert search.coverage.complete


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([f"{c}={m}" for c in CALLS for m in ("error", "timeout")]), min_size=1, max_size=4),
    st.integers(0, 99),
)
def test_whatever_one_or_two_faults_are_planted_they_are_found(lines: list[str], seed: int) -> None:
    first, *more = lines
    bugs = [{first}] + [{a, b} for a, b in pairwise(more) if a.split("=")[0] != b.split("=")[0]]
    minimal = {frozenset(bug) for bug in bugs if not any(other < bug for other in bugs)}
    search, _ = searched(agent(CALLS, *bugs), seed=seed)
    everything = schedules(search) | {frozenset(also) for found in search.findings for also in found.also}
    assert {atoms(*bug) for bug in minimal} <= everything


def test_a_call_that_only_a_fault_leads_to_is_broken_too() -> None:
    run = agent(["a#1"], ["a#1=error", "b#1=timeout"], after={"a#1=error": "b#1"})
    search, _ = searched(run)
    assert schedules(search) == {atoms("a#1=error", "b#1=timeout")}


def test_faults_that_last_find_what_takes_three_in_a_row() -> None:
    retries = {"a#1=error": "a#2", "a#2=error": "a#3"}
    bug = ("a#1=error", "a#2=error", "a#3=error")
    search, _ = searched(agent(["a#1"], bug, after=retries), lasting=("error",))
    assert schedules(search) == {atoms(*bug)}


def test_an_agent_that_fails_without_faults_is_not_searched() -> None:
    search, runs = searched(agent(CALLS, []))
    assert (runs, search.finished, search.coverage.all_sites) == (2, False, 0)


def test_a_pair_is_not_lost_to_a_single_fault_that_is_weaker() -> None:
    bugs = [("t1#1=error",), ("t1#1=timeout", "t4#1=error")]
    for seed in range(10):
        search, _ = searched(agent(CALLS, *bugs), seed=seed)
        assert schedules(search) == {atoms(*bug) for bug in bugs}


def test_a_delay_is_tried_by_itself() -> None:
    def run(ask):
        outcome = agent(["a#1", "b#1"], ["a#1=slow"])(ask)
        return outcome if len(outcome.fired) == 1 else type(outcome)(ask.atoms, outcome.firings, outcome.sites)

    search, _ = searched(run, faults=("slow", "error"))
    assert schedules(search) == {atoms("a#1=slow")}


class Patience(random.Random):
    """Draws that come to an end, so that a search that turns in circles fails instead of going on for ever."""

    left = 20_000

    def shuffle(self, x) -> None:
        self.left -= 1
        assert self.left, "it turns in circles"
        super().shuffle(x)


def test_it_ends_where_what_leads_to_a_call_was_taken_for_something_else() -> None:
    modes = ("error", "timeout", "malformed", "slow:1000")
    plain = agent(["search#1", "pay#1"], *([f"search#1={mode}"] for mode in modes[:3]))

    def run(ask: Ask) -> Outcome:
        outcome = plain(ask)
        if not any(each.site.name == "search" and each.fault in modes[:3] for each in outcome.fired):
            return outcome
        backup = Site.parse("tool/backup#1")  # because of the search, but it comes behind the payment
        hit = [(each, backup) for each in ask.atoms if each.site == backup]
        return replace(outcome, sites=(*outcome.sites, backup), firings=(*outcome.firings, *hit))

    for seed in range(10):
        search = Search(lambda _: modes, lambda _: (), Patience(seed))
        drive(search.steps(), run)
        assert search.finished
        assert schedules(search) == {atoms("search#1=error")}


def test_a_bug_that_shows_after_a_retry_too_is_told_once() -> None:
    run, later = retrying(["llm", "search", "llm", "pay"], "llm#2=empty"), set[frozenset]()
    for seed in range(10):
        search, _ = searched(run, faults=("timeout", "empty"), seed=seed)
        assert schedules(search) == {atoms("llm#2=empty")}, seed
        assert search.coverage.complete
        later |= {frozenset(one) for one in search.findings[0].also}
    assert {atoms("llm#1=timeout", "llm#3=empty"), atoms("llm#2=timeout", "llm#3=empty")} <= later


def by_chance(run, rate: float, seed: int):
    """An agent that also fails by itself, in this share of its runs."""
    luck = random.Random(seed)

    def moody(ask: Ask) -> Outcome:
        outcome = run(ask)
        return replace(outcome, failures=(BROKEN,)) if luck.random() < rate else outcome

    return moody


def test_an_agent_that_fails_by_chance_now_and_then_has_no_bug() -> None:
    for seed in range(12):
        search, _ = searched(by_chance(agent(CALLS), 0.05, seed), seed=seed)
        assert not search.findings, seed
        assert search.coverage.complete


def test_what_is_planted_is_found_through_such_noise_and_nothing_else() -> None:
    bugs = [("t1#1=error",), ("t2#1=timeout", "t5#1=timeout")]
    for seed in range(6):
        search, _ = searched(by_chance(agent(CALLS, *bugs), 0.05, seed), seed=seed)
        told = schedules(search) | {frozenset(also) for found in search.findings for also in found.also}
        assert {atoms(*bug) for bug in bugs} <= told
        assert len(search.findings) == 2


def test_three_faults_in_a_row_are_told_once_and_not_in_every_mode() -> None:
    modes = ("error", "timeout", "empty", "malformed")
    retries = {f"a#{n}={mode}": f"a#{n + 1}" for n in (1, 2) for mode in modes}
    bugs = [[f"a#1={x}", f"a#2={y}", f"a#3={z}"] for x in modes for y in modes for z in modes]
    search, runs = searched(agent(["a#1"], *bugs, after=retries), faults=modes, lasting=modes[:2])
    assert schedules(search) == {atoms("a#1=error", "a#2=error", "a#3=error")}
    assert search.coverage.complete
    assert runs < 150
