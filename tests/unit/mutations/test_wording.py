import pytest
from hypothesis import given

from mutations_support import PROMPTS, kinds, lost, mutations, prompts

TYPES = ["paraphrase", "semantic_similarity_attack"]


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


@pytest.mark.parametrize("kind", TYPES)
def test_ten_of_a_plain_order_are_no_trouble(kind) -> None:
    assert len(mutations(kind, "Book a flight to Oslo", count=10)) == 10


def test_an_order_becomes_a_request_in_good_grammar() -> None:
    said = {m.text for m in mutations("paraphrase", "Book a flight to Oslo", count=80)}
    assert "Could you book a flight to Oslo?" in said
    assert not any(" a air" in text or "Could you Book" in text for text in said)
