import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.contracts.facts import Fact, facts


def read(text: str) -> list[tuple[str, str]]:
    return [(fact.kind, fact.value) for fact in facts(text)]


@pytest.mark.parametrize(
    "text", ["1200", "1,200", "1200.00", "$1,200", "1,200.0 EUR", "EUR 1200.", "(1200)", "1200eur", "costs 1200, or"]
)
def test_one_number_in_many_forms(text: str) -> None:
    assert read(text) == [("number", "1200")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-05-12", "2026-05-12"),
        ("2026-05-12T09:30:00"[:10], "2026-05-12"),
        ("May 12, 2026", "2026-05-12"),
        ("May 12th", "*-05-12"),
        ("12 May 2026", "2026-05-12"),
        ("12th of May", "*-05-12"),
        ("Sept. 3", "*-09-03"),
        ("12-May-2026", "2026-05-12"),
        ("31/12/2026", "2026-12-31"),
    ],
)
def test_one_date_in_many_forms(text: str, value: str) -> None:
    assert read(text) == [("date", value)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 3:30 PM", [("time", "15:30")]),
        ("at 15:30", [("time", "15:30")]),
        ("at 15:30:00", [("time", "15:30")]),
        ("at 3 p.m.", [("time", "15:00")]),
        ("12:05 am", [("time", "00:05")]),
        ("flight HAT136", [("id", "hat136")]),
        ("mia_li_3668", [("id", "mia_li_3668")]),
        ("BA-2490", [("id", "ba-2490")]),
        ("a.b+c@mail.example.com,", [("id", "a.b+c@mail.example.com")]),
        ("12/05/2026", [("date", "2026-12-05"), ("date", "2026-05-12")]),
        ("23kg and 50%", [("number", "23"), ("number", "50")]),
        ("1. First\n2) Second\n- 3. Third: 40", [("number", "40")]),
        ("the 3rd of 5", [("number", "5")]),
        ("no facts, really", []),
        ("13/13/2026", []),
        ("1.5", [("number", "1.5")]),
        ("-17", [("number", "17")]),
    ],
)
def test_what_is_a_fact(text: str, expected: list[tuple[str, str]]) -> None:
    assert read(text) == expected


def test_a_fact_knows_where_it_stands() -> None:
    assert list(facts("it costs $250 now")) == [Fact("number", "250", "250", 10)]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(text[fact.at : fact.at + len(fact.text)] == fact.text for fact in facts(text))


@given(st.integers(0, 10**12))
def test_every_whole_number_is_found_with_and_without_separators(number: int) -> None:
    assert read(f"x {number} y") == read(f"x {number:,} y") == [("number", str(number))]
