"""What every block has in common."""

from __future__ import annotations

import pytest
from pydantic import Field

from config_support import refused
from flakestorm.config.base import Probability, Strict, words
from flakestorm.config.vocabulary import Vocabulary


class Block(Strict):
    needed: str
    number: int = 3
    items: list[str] = Field(default_factory=list, alias="list")
    chance: Probability = 1.0


def test_a_key_without_a_value_has_its_default() -> None:
    block = Block(needed="x", number=None, list=None)
    assert (block.number, block.items) == (3, [])


def test_a_key_that_is_required_needs_a_value() -> None:
    assert "needed" in refused({"needed": None}, Block)


@pytest.mark.parametrize("value", [None, 1])
def test_unknown_keys_are_refused_with_and_without_a_value(value: object) -> None:
    assert "other" in refused({"needed": "x", "other": value}, Block)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_probability_is_between_0_and_1(value: float) -> None:
    assert "chance" in refused({"needed": "x", "chance": value}, Block)


def test_blocks_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Block(needed="x").number = 4


def test_words_offer_the_built_in_ones_and_allow_any() -> None:
    schema = {"type": "string", "title": "Mode"}
    words(Vocabulary("w", frozenset({"b", "a"})))(schema)
    assert schema == {"title": "Mode", "anyOf": [{"enum": ["a", "b"]}, {"type": "string"}]}
