import pytest
from hypothesis import given

from mutations_support import PROMPTS, kinds, lost, mutations, prompts

TYPES = ["tone_shift"]


@pytest.mark.parametrize("kind", TYPES)
@given(prompt=prompts)
def test_facts_survive(kind, prompt) -> None:
    for mutation in mutations(kind, prompt, count=20):
        assert mutation.kind == "benign"
        assert lost(prompt, mutation.text) == []
        assert mutation.text != prompt


@pytest.mark.parametrize("kind", TYPES)
def test_every_operator_has_something_to_say(kind) -> None:
    found = {m.operator for prompt in PROMPTS for m in mutations(kind, f"do not know their flight. {prompt}", count=40)}
    assert found == kinds(kind)["benign"]
    assert not kinds(kind)["attack"]


def test_names_are_not_shouted() -> None:
    (loud, *_) = [
        m.text for m in mutations("tone_shift", "Book a flight to Oslo", count=40) if m.operator == "shouting"
    ]
    assert loud.startswith("BOOK A FLIGHT TO Oslo")
