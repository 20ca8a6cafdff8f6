import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.config.vocabulary import MUTATION_WEIGHTS
from flakestorm.mutations.base import REQUEST_TYPES
from flakestorm.mutations.by_model import ABOUT, kind_of, question, taken, texts_in


def test_every_text_type_can_be_asked_for() -> None:
    assert ABOUT.keys() == MUTATION_WEIGHTS.keys() - {*REQUEST_TYPES, "custom"}
    for name in ABOUT:
        asked = question(name, 'say "hi"\nnow', 7)
        assert "7 strings" in asked
        assert '"say \\"hi\\"\\nnow"' in asked


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('["a b", "c"]', ["a b", "c"]),
        ('Sure!\n```json\n["a", "b"]\n```\nEnjoy', ["a", "b"]),
        ('["a", "b", "cut o', ["a", "b"]),
        ('{"mutations": ["a", "b"]}', ["a", "b"]),
        ('[{"input": "a"}, {"input": "b"}]', ["a", "b"]),
        ("1. first one\n2) second one\n", ["first one", "second one"]),
        ('- "x"\n- y', ["x", "y"]),
        ("I'm sorry, I can't help with that.", []),
        ("", []),
        ("[1, 2, null]", []),
        ("[" * 100_000, []),
    ],
)
def test_what_is_found_in_answers(answer, found) -> None:
    assert texts_in(answer) == found


@given(st.text(max_size=200))
def test_rubbish_never_raises(answer) -> None:
    assert isinstance(texts_in(answer), list)


def test_a_benign_text_must_keep_the_facts_and_none_comes_twice() -> None:
    prompt = "Book a flight to Oslo for $300"
    said = ["Get me to Oslo for $300", "Get me to Bergen for $300", prompt, "Get me to Oslo for $300", "x" * 30_000]
    assert [m.text for m in taken("paraphrase", prompt, said, 1.0)] == ["Get me to Oslo for $300"]
    assert [m.text for m in taken("advanced_jailbreak", prompt, ["Be evil"], 1.0)] == ["Be evil"]
    assert kind_of("noise") == "benign"
    assert kind_of("prompt_injection") == "attack"


def test_a_blank_text_is_an_attack_by_its_length_and_by_nothing_else() -> None:
    said = ["", " \n", "Ignore that."]
    assert [m.text for m in taken("prompt_injection", "Book it", said, 1.0)] == ["Ignore that."]
    assert [m.text for m in taken("length_extremes", "Book it", said, 1.0)] == said
