import pytest
from hypothesis import given

from mutations_support import PROMPTS, kinds, lost, mutations, prompts

TYPES = ["noise"]


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


def test_neighbours_are_next_to_each_other_on_the_keyboard() -> None:
    from flakestorm.mutations.noise import NEIGHBOURS

    assert {*NEIGHBOURS["g"]} == {*"fhtyvb"}
    assert {*NEIGHBOURS["q"]} == {*"wa"}
    assert all(key in NEIGHBOURS[other] for key, others in NEIGHBOURS.items() for other in others)


def test_a_typo_is_one_key_away() -> None:
    from flakestorm.mutations.noise import NEIGHBOURS

    prompt = "book a flight"
    for mutation in mutations("noise", prompt, count=100):
        if mutation.operator == "neighbour_key":
            changed = [(a, b) for a, b in zip(prompt, mutation.text, strict=True) if a != b]
            assert all(b in NEIGHBOURS[a] for a, b in changed)
