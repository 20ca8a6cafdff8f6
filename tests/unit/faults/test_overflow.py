import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.config.model import ContextAttack
from flakestorm.core.choices import Choices
from flakestorm.faults.base import Heard
from flakestorm.faults.overflow import INJECT_TOKENS, filler, overflow
from flakestorm.wire.context import Conversation
from flakestorm.wire.tokens import count_tokens


@given(tokens=st.integers(1, 400), seed=st.integers())
def test_the_filler_has_exactly_so_many_tokens(tokens: int, seed: int) -> None:
    assert count_tokens(filler(tokens, Choices(seed))) == tokens


def test_it_is_seeded_and_no_sentence_is_like_another() -> None:
    text = filler(5_000, Choices(1))
    assert text == filler(5_000, Choices(1)) != filler(5_000, Choices(2))
    sentences = text.split(". ")
    assert len(set(sentences[1::2])) > 100


@pytest.mark.parametrize(("settings", "tokens"), [({}, INJECT_TOKENS), ({"inject_tokens": 9}, 9)])
def test_it_stands_in_front_of_what_is_asked(settings: dict[str, int], tokens: int) -> None:
    entry = overflow(ContextAttack(type="overflow", **settings), Choices(1), Heard(Conversation()))
    assert entry is not None
    assert (count_tokens(entry.text), entry.strategy, entry.canary) == (tokens, "prepend", None)


def test_no_tokens_are_nothing() -> None:
    assert overflow(ContextAttack(type="overflow", inject_tokens=0), Choices(1), Heard(Conversation())) is None
