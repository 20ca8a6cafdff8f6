import re

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.choices import Choices
from flakestorm.faults.canary import instruction

HALVES = re.compile(r"one word: (\w+), directly followed by (\w+)\.")


@given(payload=st.text(), seed=st.integers())
def test_obeying_makes_the_word_and_quoting_does_not(payload: str, seed: int) -> None:
    text, canary = instruction(payload, Choices(seed, "run"))
    assert text.startswith(payload)
    halves = HALVES.search(text)
    assert halves is not None
    assert halves[1] + halves[2] == canary.word
    assert canary.word.casefold() not in text.casefold()


def test_runs_have_their_own_and_a_run_has_the_same_again() -> None:
    words = {instruction("x", Choices(1, "scenario", prompt, 1))[1].word for prompt in range(1000)}
    assert len(words) == 1000
    assert instruction("x", Choices(7)) == instruction("x", Choices(7))


def test_only_what_a_tool_told_may_not_be_handed_on() -> None:
    text, canary = instruction("Obey.", Choices(1), told_by_tool=True)
    assert canary.text == text
    assert instruction("Obey.", Choices(1))[1].text == ""
