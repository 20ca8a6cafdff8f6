import pytest
from hypothesis import given

from mutations_support import PROMPTS, kinds, lost, mutations, prompts

TYPES = ["language_mixing"]


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


def test_there_are_more_than_six_languages() -> None:
    from flakestorm.mutations.languages import FRAMES, WORDS

    assert len(FRAMES) >= 6
    assert len(WORDS) >= 6
    said = [m.text for m in mutations("language_mixing", "Book a flight to Oslo", count=200)]
    seen = [code for code, frames in FRAMES.items() if any(text.startswith(frames[0][0]) for text in said)]
    assert len(seen) >= 6
