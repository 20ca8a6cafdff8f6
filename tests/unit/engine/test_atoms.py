from flakestorm.core.site import Site
from flakestorm.engine.atoms import Atom, Outcome, measure, planned_of, small
from search_support import BROKEN, atom


def test_a_fault_is_written_as_inject_takes_it() -> None:
    assert atom("search#2=error:503").line == "tool/search#2=error:503"
    assert Atom(Site("mcp", "search", 1), "error", lasting=True).line == "tool/search=error"
    assert Atom(Site("llm", "gpt-4o", 1), "rate_limit", lasting=True).line == "llm/gpt-4o=rate_limit"
    assert planned_of(atom("search#2=error:500")).mode == atom("search#2=error:500").mode == "error"


def test_two_faults_at_one_call_conflict_and_a_lasting_one_with_all_of_its_name() -> None:
    assert atom("a#1=error").conflicts(atom("a#1=timeout"))
    assert not atom("a#1=error").conflicts(atom("a#2=error"))
    assert Atom(Site("tool", "a", 1), "error", lasting=True).conflicts(atom("a#2=error"))


def test_fewer_faults_are_smaller_and_of_as_many_the_weaker_mode() -> None:
    assert measure([atom("z#9=wrong_value")]) < measure([atom("a#1=slow"), atom("b#1=slow")])
    assert small([atom("a#1=timeout"), atom("a#1=slow"), atom("a#1=error")])[0] == atom("a#1=slow")


def test_a_run_that_could_not_be_judged_is_no_pass() -> None:
    assert Outcome(frozenset()).passed
    assert not Outcome(frozenset(), judged=False).passed
    assert Outcome(frozenset(), failures=(BROKEN,)).shows(None)
