"""What is asked of a match, and that neighbours are judged as their patterns say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flakestorm.patterns.engine import rows_of
from flakestorm.patterns.finding import Finding
from flakestorm.patterns.rules import Neighbour, matches, rule_of

ROWS = {row["id"]: row for row in rows_of("pii.yaml")}
BEHIND = [chr(code) for code in range(128)] + ["é", "中", " Release", " ==", " [x"]


def neighbours() -> Iterator[Neighbour]:
    seen = set()
    for row in ROWS.values():
        rule = rule_of(row)
        for each in (rule.not_before, rule.not_after):
            if each.forbidden.pattern not in seen:
                seen.add(each.forbidden.pattern)
                yield each


@pytest.mark.parametrize("neighbour", list(neighbours()), ids=lambda each: ascii(each.forbidden.pattern)[-30:])
def test_characters_say_which_neighbours_are_forbidden_or_may_be(neighbour: Neighbour) -> None:
    assert neighbour.alone
    for first in (chr(code) for code in range(128)):
        forbidden = [bool(neighbour.forbidden.match(first + rest)) for rest in BEHIND]
        assert all(forbidden) or first not in neighbour.alone
        assert not any(forbidden) or first in neighbour.alone | neighbour.openers
    assert not neighbour.alone & neighbour.openers


def test_what_stands_in_front_is_one_character() -> None:
    """Then it is forbidden or not, whatever stands before it."""
    assert {rule_of(row).not_before.openers for row in ROWS.values()} == {frozenset()}


def found(name: str, text: str, *matched: str) -> list[Finding]:
    places = [(text.index(match), text.index(match) + len(match)) for match in matched]
    return list(matches(rule_of(ROWS[name]), text, places))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("on 2024-05-21", 1),
        ("on 2024-05-21.", 1),
        ("on 2024-05-21.5", 0),
        ("on x2024-05-21", 0),
        ("on 2024-05-21x", 0),
        ("于2024-05-21是", 1),
        ("on é2024-05-21", 0),
        ("on 2024-05-21é", 0),
    ],
)
def test_a_match_must_pass_its_neighbours(text: str, count: int) -> None:
    assert len(found("date-numeric", text, "2024-05-21")) == count


def test_a_match_must_pass_its_check() -> None:
    assert found("date-numeric", "on 2024-99-99", "2024-99-99") == []


def test_a_word_near_a_match_says_that_it_is_one() -> None:
    plain, named = (found("us-ssn", text, "536-22-8726") for text in ("it is 536-22-8726", "my ssn is 536-22-8726"))
    assert round(named[0].confidence - plain[0].confidence, 2) == 0.2
    assert found("us-ssn-in-context", "it is 536228726", "536228726") == []
    assert len(found("us-ssn-in-context", "ssn 536228726", "536228726")) == 1
    assert len(found("us-ssn-in-context", "536228726 is my ssn", "536228726")) == 1
    assert len(found("date-year", "until 1972", "1972")) == 0  # its word stands in front of it, no further than `near`
    assert len(found("date-year", "born in 1972", "1972")) == 1


def test_a_word_in_front_of_a_match_makes_it_something_else() -> None:
    assert found("us-ssn", "order 536-22-8726", "536-22-8726") == []


def test_a_weak_match_counts_where_there_is_little_else() -> None:
    assert len(found("us-bank-account-bare", "945456787654", "945456787654")) == 1
    assert found("us-bank-account-bare", "945456787654 is what it said on it", "945456787654") == []


def test_what_belongs_to_a_match_is_part_of_the_finding() -> None:
    (network,) = found("ip-v4", "10.0.0.0/8 is ours", "10.0.0.0")
    assert (network.start, network.end) == (0, 10)
