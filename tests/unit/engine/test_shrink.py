import random

import pytest

from flakestorm.core.conversation import Conversation
from flakestorm.engine.asking import Asker
from flakestorm.engine.atoms import Ask, Outcome
from flakestorm.engine.shrink import Cleared, reduce, shorten, smaller, weaken
from search_support import BROKEN, agent, atom, atoms, drive

MANY = [f"t{n:02}#1=error" for n in range(24)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("bug", [MANY[3:4], [MANY[2], MANY[20]], [MANY[1], MANY[7], MANY[15]]])
def test_exactly_what_is_planted_remains(bug: list[str], seed: int) -> None:
    run = agent([line.partition("=")[0] for line in MANY], bug)
    asker, whole = Asker(), atoms(*MANY)
    outcome, runs = drive(reduce(asker, run(Ask(whole)), BROKEN, random.Random(seed)), run)
    assert outcome.fired == atoms(*bug)
    assert runs < 60


def test_what_was_cleared_is_not_suspected() -> None:
    cleared = Cleared()
    cleared.add(atoms("a#1=error", "b#1=error"))
    alone, both = cleared.suspects(atoms("a#1=error", "b#1=error", "c#1=error"))
    assert alone == [atom("c#1=error")]
    assert sorted(map(sorted, both)) == [
        sorted(atoms("a#1=error", "c#1=error")),
        sorted(atoms("b#1=error", "c#1=error")),
    ]


def test_the_weakest_mode_at_the_earliest_call_remains() -> None:
    run = agent(["a#1", "a#2"], ["a#2=timeout"], ["a#1=timeout"], ["a#2=error"])
    options = smaller(lambda _: ("error", "timeout", "slow"))
    outcome, _ = drive(weaken(Asker(), run(Ask(atoms("a#2=timeout"))), BROKEN, options), run)
    assert outcome.fired == atoms("a#2=error")


def test_a_delay_is_made_shorter_while_it_still_shows() -> None:
    assert atom("a#1=slow:1250") in smaller(lambda _: ())(atom("a#1=slow:5000"))


def test_an_input_is_cut_down_to_the_words_that_matter() -> None:
    def run(ask: Ask) -> Outcome:
        text = ask.text or ""
        broken = (BROKEN,) if "refund" in text and "twice" in text else ()
        firings = tuple((each, each.site) for each in ask.atoms)
        return Outcome(ask.atoms, firings, tuple(each.site for each in ask.atoms), broken, text=ask.text)

    text = "Hello there.\n\nPlease refund my order A-17. Do it twice if you can. Thank you very much."
    start = Outcome(atoms("a#1=error"), ((atom("a#1=error"), atom("a#1=error").site),), failures=(BROKEN,))
    outcome, _ = drive(shorten(Asker(), start, BROKEN, text), run)
    assert outcome.text is not None
    assert sorted(outcome.text.split()) == ["refund", "twice"]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("bug", [MANY[3:4], [MANY[2], MANY[20]], [MANY[1], MANY[7], MANY[15]]])
def test_what_queries_are_filled_with_does_not_change_what_remains(bug: list[str], seed: int) -> None:
    names = [line.partition("=")[0] for line in MANY]
    other = [MANY[4].replace("error", "timeout"), MANY[5].replace("error", "timeout")]
    run = agent(names, bug, other)

    def fill(part, without):
        taken = {each.site for each in part}
        return part | {a for a in atoms(*(line.replace("error", "timeout") for line in MANY)) if a.site not in taken}

    asker = Asker()
    outcome, _ = drive(reduce(asker, run(Ask(atoms(*MANY))), BROKEN, random.Random(seed), fill=fill), run)
    assert outcome.fired in (atoms(*bug), atoms(*other))
    assert any(each.asked == outcome.fired and each.shows(BROKEN) for each in asker.runs)


def test_a_weaker_fault_is_asked_without_filling_where_that_fails() -> None:
    run = agent(["a#1", "b#1"], ["a#1=timeout"], ["b#1=empty"])
    asker, options = Asker(), smaller(lambda _: ("error", "timeout"))
    start = run(Ask(atoms("a#1=timeout")))
    outcome, _ = drive(weaken(asker, start, BROKEN, options, fill=lambda a, _: a | atoms("b#1=empty")), run)
    assert outcome.fired == atoms("a#1=timeout")


def test_turns_that_do_not_matter_are_left_out_of_a_conversation() -> None:
    def run(ask: Ask) -> Outcome:
        turns = ask.text.turns if isinstance(ask.text, Conversation) else (str(ask.text),)
        broken = (BROKEN,) if any("pay" in turn for turn in turns) and turns[-1].startswith("again") else ()
        return Outcome(ask.atoms, tuple((each, each.site) for each in ask.atoms), (), broken, text=ask.text)

    text = Conversation(["hello", "please pay", "thanks", "what else?", "again please"])
    fault = atom("a#1=error")
    start = Outcome(frozenset({fault}), ((fault, fault.site),), failures=(BROKEN,))
    outcome, _ = drive(shorten(Asker(), start, BROKEN, text), run)
    assert isinstance(outcome.text, Conversation)
    assert outcome.text.turns == ("pay", "again")


def test_what_another_fault_hid_in_a_larger_run_is_asked_by_itself() -> None:
    def run(ask: Ask) -> Outcome:
        cut, refused = (atom(text) in ask.atoms for text in ("m#1=empty", "t#1=error"))
        fired = sorted(ask.atoms)
        failures = (BROKEN,) if cut and not refused else ()
        return Outcome(ask.atoms, tuple((each, each.site) for each in fired), tuple(a.site for a in fired), failures)

    asker, cleared = Asker(), Cleared()
    cleared.add(run(Ask(atoms("m#1=empty", "t#1=error"))).fired)  # it passed: nobody was paid
    start = run(Ask(atoms("m#1=empty", "t#1=slow")))
    outcome, _ = drive(reduce(asker, start, BROKEN, random.Random(1), cleared), run)
    assert outcome.fired == atoms("m#1=empty")
