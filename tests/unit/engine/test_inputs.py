import random
from dataclasses import replace

from flakestorm.engine.atoms import Ask, Outcome
from flakestorm.engine.explore import Search
from flakestorm.engine.inputs import Inputs
from search_support import BROKEN, agent, atoms, drive

CALLS = [f"t{n}#1" for n in range(5)]


def searched(run, *texts: str, faults=("error", "timeout", "empty")) -> tuple[Search, Inputs]:
    search = Search(lambda _: faults, lambda _: (), random.Random(1))
    drive(search.steps(), run)
    inputs = Inputs(search, texts)
    drive(inputs.steps(), run)
    return search, inputs


def with_inputs(plain, *bugs: tuple[str, tuple[str, ...]]):
    """An agent that also breaks its promise under these faults if its input holds a word."""

    def run(ask: Ask) -> Outcome:
        outcome = plain(ask)
        broken = any(word in (ask.text or "") and atoms(*bug) <= outcome.fired for word, bug in bugs)
        return replace(outcome, failures=(BROKEN,)) if broken else outcome

    return run


def test_a_bug_that_takes_a_fault_and_an_input_is_found_with_both() -> None:
    run = with_inputs(agent(CALLS, ["t0#1=error"]), ("UPPER", ("t3#1=timeout",)))
    search, inputs = searched(run, "lower", "UPPER", "UPPER again")
    plain, both = search.findings
    assert (plain.text, both.text) == (None, "UPPER")
    assert frozenset(both.schedule) == atoms("t3#1=timeout")
    assert inputs.given == dict.fromkeys(("lower", "UPPER", "UPPER again"), 14)


def test_two_faults_and_an_input() -> None:
    run = with_inputs(agent(CALLS), ("UPPER", ("t3#1=timeout", "t1#1=timeout")))
    for seed in range(5):
        search = Search(lambda _: ("timeout",), lambda _: (), random.Random(seed))
        drive(search.steps(), run)
        drive(Inputs(search, ["UPPER"]).steps(), run)
        assert [frozenset(found.schedule) for found in search.findings] == [atoms("t1#1=timeout", "t3#1=timeout")]


def test_an_input_that_fails_by_itself_is_left() -> None:
    search, inputs = searched(with_inputs(agent(CALLS), ("UPPER", ())), "UPPER", "lower")
    assert not search.findings
    assert (inputs.alone, list(inputs.given)) == (["UPPER"], ["lower"])


def test_what_three_faults_do_with_any_input_does_not_need_one() -> None:
    bug = ["t0#1=error", "t1#1=error", "t2#1=error"]
    search, _ = searched(with_inputs(agent(CALLS), ("", tuple(bug))), "lower", faults=("error",))
    assert all(found.text is None for found in search.findings)
