import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.mutations.spans import closed, edited, facts, lowered, outside, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Book a flight to Oslo on 12 May 2025 for $300", ["Oslo", "12 May 2025", "$300"]),
        ("Anna Maria wants it", ["Anna Maria"]),
        ("see https://a.example/x?y=Z now", ["https://a.example/x?y=Z"]),
        ("mail anna@example.com about AB-1234", ["anna@example.com", "AB-1234"]),
        ('say "no thanks" to IBM', ['"no thanks"', "IBM"]),
        ("What is this? Tell me. Berlin is cold", ["Berlin"]),
        ("fill {name} and run `ls -la`", ["{name}", "`ls -la`"]),
        ("find a hotel", []),
        ("I'm late and I know", []),
    ],
)
def test_names_numbers_addresses_and_quotations_are_facts(text, found) -> None:
    assert facts(text) == found


@given(st.text(max_size=200))
def test_words_never_lie_in_a_fact(text) -> None:
    hidden = outside(text, lambda part: "\x01" * len(part))
    assert all(set(hidden[w.start() : w.end()]) == {"\x01"} for w in words(text))
    assert all(fact in text for fact in facts(text))


@given(st.text(max_size=200), st.integers())
def test_an_edit_keeps_every_fact(text, seed) -> None:
    changed = edited(text, random.Random(seed), 1.0, lambda word: word + "x")
    assert (changed is None) == (not words(text))
    assert outside(text, lambda part: part) == text


def test_a_sentence_goes_on_in_small_letters_unless_it_begins_with_a_name() -> None:
    assert lowered("Book a flight") == "book a flight"
    assert lowered("Oslo please") == "Oslo please"
    assert lowered("I need it") == "I need it"
    assert lowered("HI") == "HI"
    assert lowered("Write@example.com wants it") == "Write@example.com wants it"


def test_a_full_stop_comes_where_another_sentence_can_follow() -> None:
    assert closed("go there ") == "go there."
    assert closed("really?") == "really?"
    assert closed("") == ""
