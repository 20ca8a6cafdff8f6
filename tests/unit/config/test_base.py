"""What every block has in common."""

import pickle
from typing import Annotated

import pytest
from msgspec import field

from config_support import refused
from flakestorm.config.base import Probability, Strict, keys_of, members, words
from flakestorm.config.invariants import Invariant, Origin
from flakestorm.config.vocabulary import Vocabulary


class Block(Strict, frozen=True, kw_only=True):
    needed: str
    number: int = 3
    items: list[str] = field(default_factory=list, name="list")
    chance: Probability = 1.0


def test_a_key_without_a_value_has_its_default() -> None:
    block = Block.of({"needed": "x", "number": None, "list": None})
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
    with pytest.raises(AttributeError, match="immutable"):
        Block(needed="x").number = 4


def test_words_offer_the_built_in_ones_and_allow_any() -> None:
    schema = words(Vocabulary("w", frozenset({"b", "a"})))
    assert schema == {"anyOf": [{"enum": ["a", "b"]}, {"type": "string"}]}


def test_numbers_and_switches_may_be_text() -> None:
    assert Block.of({"needed": "x", "number": "4", "chance": "0.5"}) == Block(needed="x", number=4, chance=0.5)


def test_settings_that_are_not_their_defaults() -> None:
    assert Block(needed="x", number=3, items=["a"]).given() == {"needed": "x", "items": ["a"]}


class Leaf(Strict, frozen=True, kw_only=True):
    size: int = 1


class Twig(Leaf, frozen=True, kw_only=True, tag_field="type", tag="twig"):
    pass


class Bough(Leaf, frozen=True, kw_only=True, tag_field="type", tag="bough"):
    pass


class Tree(Strict, frozen=True, kw_only=True):
    leaf: Leaf | None = None
    leaves: Annotated[list[Leaf], "said of it"] = []
    branches: list[Twig | Bough] = []
    heights: dict[str, int] = {}


def test_keys_know_the_blocks_behind_them() -> None:
    keys = keys_of(Tree)
    assert [(key.name, key.blocks, key.many) for key in keys.values()] == [
        ("leaf", (Leaf,), False),
        ("leaves", (Leaf,), True),
        ("branches", (Twig, Bough), True),
        ("heights", (), False),
    ]
    assert keys["branches"].block({"type": "bough"}) is Bough
    assert keys["branches"].block({"type": "root"}) is None
    assert keys["leaf"].block(None) is Leaf
    assert members(Annotated[list[int] | str | None, "said"]) == (list[int], str)


def test_empty_keys_are_left_out_however_deep() -> None:
    tree = Tree.of({"leaf": {"size": None}, "leaves": [{"size": None}], "branches": [{"type": "twig", "size": None}]})
    assert tree == Tree(leaf=Leaf(), leaves=[Leaf()], branches=[Twig()])


def test_a_block_that_knows_where_it_was_written_keeps_that_when_it_is_pickled() -> None:
    placed = Invariant(type="contains", value="x").at(Origin("folder", "file", 3))
    again = pickle.loads(pickle.dumps(placed))
    assert again == placed
    assert again.origin == Origin("folder", "file", 3)
    assert (again.origin.file, again.origin.line) == ("file", 3)
