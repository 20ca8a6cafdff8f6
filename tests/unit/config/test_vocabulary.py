"""Open sets of words."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from flakestorm.config import vocabulary
from flakestorm.config.vocabulary import INVARIANT_TYPES, MUTATION_TYPES, MUTATION_WEIGHTS, TOOL_MODES, Vocabulary


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """To say what is installed, which is looked up once otherwise."""
    vocabulary.added.cache_clear()
    yield monkeypatch
    vocabulary.added.cache_clear()


def test_built_in_words_are_known() -> None:
    assert TOOL_MODES.complaint("error") is None


def test_a_misspelt_word_is_answered_with_the_nearest_and_the_list() -> None:
    said = Vocabulary("colour", frozenset({"red", "green"})).complaint("gren")
    assert said == "unknown colour 'gren'; did you mean 'green'? known: green, red"


def test_a_strange_word_is_answered_with_the_list() -> None:
    assert Vocabulary("colour", frozenset({"red"})).complaint("xyz") == "unknown colour 'xyz'; known: red"


def test_a_plugins_words_are_known_and_suggested(installed: pytest.MonkeyPatch) -> None:
    installed.setattr(importlib.metadata, "entry_points", lambda *, group: [EntryPoint("volcano", "x:y", group)])
    words = Vocabulary("disaster", frozenset({"flood"}), "some.group")
    assert words.complaint("volcano") is None
    assert words.complaint("volcanoe") == "unknown disaster 'volcanoe'; did you mean 'volcano'? known: flood, volcano"


def test_plugins_are_looked_for_once_however_many_words_are_not_known(installed: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    installed.setattr(importlib.metadata, "entry_points", lambda *, group: asked.append(group) or [])
    words = Vocabulary("disaster", frozenset({"flood"}), "some.group")
    assert all(words.complaint(f"flod{n}") for n in range(100))
    assert asked == ["some.group"]


def test_a_frequent_mistake_has_its_own_answer() -> None:
    assert "excludes_pattern" in (INVARIANT_TYPES.complaint("system_prompt_leak_probe") or "")


def test_mutation_types_are_those_with_a_weight() -> None:
    assert frozenset(MUTATION_WEIGHTS) == MUTATION_TYPES.words
    assert len(MUTATION_WEIGHTS) == 24
