import pytest

from contracts_support import CRASH, fired, inv, said
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import judge, needs_baseline, prepare
from flakestorm.contracts.semantic import COMPARED_CHARS, likeness
from flakestorm.errors import Misuse

BOOKED = "Your flight SK4521 to Oslo on 12 May is booked."

SAME = [
    (BOOKED, "Your flight to Oslo (SK4521) has been booked for 12 May."),
    (BOOKED, BOOKED.replace("SK4521", "DY1300")),  # ids may be made anew in every run
    (BOOKED, "Your flight SK4521 to Oslo on May 12th is booked."),
    ("The cheapest flight to Oslo is SK4521 for 129 EUR.", "SK4521 is the cheapest flight to Oslo; it costs 129 EUR."),
    (
        "You can check in online 24 hours before departure.",
        "Online check-in opens 24 hours before your flight departs.",
    ),
    ("The capital of Norway is Oslo.", "Oslo is the capital of Norway."),
    ("I'm sorry, but I could not find any hotels in Bergen.", "Unfortunately I couldn't find any hotels in Bergen."),
    ("Your order #8841 has shipped and should arrive on Friday.", "Order 8841 shipped and should arrive on Friday."),
]
OTHER = [
    (BOOKED, "Your flight SK4521 to Oslo on 12 May is not booked."),
    ("You can change this ticket.", "You can't change this ticket."),
    ("The flight costs 129 EUR.", "The flight costs 921 EUR."),
    ("Delivery takes 2 days.", "Delivery takes 20 days."),
    (BOOKED, BOOKED.replace("12 May", "21 May")),
    (BOOKED, "I am sorry, the flight search is unavailable. Nothing has been booked."),
    ("The capital of Norway is Oslo.", "Photosynthesis turns light into chemical energy."),
    ("I have cancelled your reservation.", "I am transferring you to a human agent."),
    ("Your order has shipped.", ""),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words_is_alike(one: str, other: str) -> None:
    score, odds = likeness(one, other)
    assert score >= 0.75, odds
    assert likeness(other, one) == (score, "")


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_what_contradicts_or_is_about_something_else_is_not(one: str, other: str) -> None:
    assert likeness(one, other)[0] <= 0.55
    assert likeness(other, one)[0] <= 0.55


def test_other_words_for_the_same_are_not_recognised() -> None:
    """The limit of words, so that nobody takes it for understanding."""
    assert likeness("Your trip is confirmed.", "All set, you are flying!")[0] < 0.5


def test_similarity_is_to_what_was_expected() -> None:
    spec = inv("similarity", expected=BOOKED)
    near, far = judge(spec, said(SAME[0][1])), judge(spec, said(OTHER[0][1]))
    assert near is not None
    assert near.reason == "0.85 alike to the expected text; at least 0.8 wanted"
    assert far is not None
    assert far.outcome == "fail"
    assert "because one of them denies and the other does not" in far.reason
    assert judge(inv("similarity", expected=BOOKED, threshold=0.9), said(SAME[0][1])).outcome == "fail"  # type: ignore[union-attr]


def under_chaos(output: str, baseline: str | None) -> RunView:
    return said(output, chaos=True, ledger=fired(("tool", "search", "tool"), tools=1), baseline=baseline)


def test_behaviour_is_compared_with_the_same_prompt_without_chaos() -> None:
    spec = inv("behavior_unchanged")
    assert needs_baseline(spec)
    assert judge(spec, under_chaos(BOOKED, BOOKED)).outcome == "pass"  # type: ignore[union-attr]
    assert judge(spec, under_chaos("The search is unavailable.", BOOKED)).outcome == "fail"  # type: ignore[union-attr]
    assert judge(spec, said(BOOKED)) is None  # a run without chaos is not compared with itself


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("baseline", [None, "", "  \n"])
def test_without_a_baseline_nothing_is_known(baseline: str | None, negate: bool) -> None:
    result = judge(inv("behavior_unchanged", negate=negate), under_chaos(BOOKED, baseline))
    assert result is not None
    assert result.outcome == "inconclusive"
    assert "there is no baseline" in result.reason


def test_a_text_may_be_the_baseline_in_every_scenario() -> None:
    spec = inv("behavior_unchanged", baseline=BOOKED, similarity_threshold=0.9)
    assert not needs_baseline(spec)
    assert judge(spec, said(BOOKED)).outcome == "pass"  # type: ignore[union-attr]
    assert judge(spec, said(SAME[0][1])).outcome == "fail"  # type: ignore[union-attr]
    assert judge(spec, RunView("hi", error=CRASH)).outcome == "fail"  # type: ignore[union-attr]
    with pytest.raises(Misuse, match="'baseline' is empty"):
        prepare([inv("behavior_unchanged", baseline=" ")])


def test_long_texts_are_compared_in_part_and_that_is_said() -> None:
    text = "flight " * COMPARED_CHARS
    result = judge(inv("similarity", expected=text), said(text + "x"))
    assert result is not None
    assert "of the first 20,000 characters" in result.reason
