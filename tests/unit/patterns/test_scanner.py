"""Finding personal data: the patterns' own examples, real cases, and text that must stay unmarked."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.errors import Misuse
from flakestorm.patterns.engine import Document, Matcher, rows_of
from flakestorm.patterns.rules import matches, rule_of
from flakestorm.patterns.scanner import entities, readings, scan

ROWS = rows_of("pii.yaml")
CASES = Path(__file__).parents[3].parent / "shared" / "data" / "pii" / "presidio_recognizer_cases.jsonl"
TRAJECTORIES = CASES.parents[1] / "trajectories" / "tau_bench_gpt4o_airline.jsonl"


@pytest.mark.parametrize(("row", "text"), [(r, t) for r in ROWS for t in r["examples"]], ids=lambda v: str(v)[:40])
def test_example_is_found_once(row: dict[str, Any], text: str) -> None:
    assert [f.entity for f in scan(text, entities=[row["entity"]])] == [row["entity"]]


@pytest.mark.parametrize(
    ("row", "text"), [(r, t) for r in ROWS for t in r["counter_examples"]], ids=lambda v: str(v)[:40]
)
def test_counter_example_is_not_found(row: dict[str, Any], text: str) -> None:
    assert [f for f in scan(text, entities=[row["entity"]]) if f.id == row["id"]] == []
    assert row.get("asked_for") or [f for f in scan(text) if f.entity == row["entity"]] == []


def test_every_pattern_is_documented_and_named_once() -> None:
    assert [name for name, n in Counter(row["id"] for row in ROWS).items() if n > 1] == []
    for row in ROWS:
        assert row["source"], row["id"]
        assert row["examples"], row["id"]
        assert row["counter_examples"], row["id"]
        assert 0 < row["confidence"] <= 1


def test_positions_kind_and_confidence() -> None:
    (found,) = scan("écrivez à ada@example.org !")
    assert (found.kind, found.id, found.entity) == ("pii", "email-address", "EMAIL_ADDRESS")
    assert (found.start, found.end, found.confidence) == (10, 25, 1.0)


def test_context_raises_the_confidence() -> None:
    assert scan("SSN 536-22-8726")[0].confidence > scan("it is 536-22-8726")[0].confidence


def test_only_the_entities_asked_for() -> None:
    text = "ada@example.org from 192.168.0.1"
    assert [f.entity for f in scan(text, entities=["IP_ADDRESS"])] == ["IP_ADDRESS"]
    assert scan(text, entities=[]) == []


def test_an_unknown_entity_is_answered_with_the_nearest() -> None:
    with pytest.raises(Misuse, match="unknown entity 'EMAIL_ADRESS'; did you mean 'EMAIL_ADDRESS'"):
        scan("x", entities=["EMAIL_ADRESS"])


def test_entities_are_sorted_and_complete() -> None:
    assert entities() == tuple(sorted({row["entity"] for row in ROWS}))


def test_there_are_more_than_fifty_entities() -> None:
    assert len(entities()) >= 52


def test_what_is_not_personal_on_its_own_must_be_asked_for() -> None:
    text = "On 2024-05-21 see example.com"
    assert scan(text) == []
    assert [f.entity for f in scan(text, entities=["DATE_TIME", "URL"])] == ["DATE_TIME", "URL"]
    assert [f.entity for f in readings(text)] == ["DATE_TIME", "URL"]


def test_a_weak_number_counts_next_to_its_name_or_alone() -> None:
    assert [f.entity for f in scan("945456787654", entities=["US_BANK_NUMBER"])] == ["US_BANK_NUMBER"]
    assert scan("we shipped 945456787654 grains of rice", entities=["US_BANK_NUMBER"]) == []
    assert scan("account number 945456787654 of mine, not yours", entities=["US_BANK_NUMBER"]) != []


def test_a_number_is_read_as_all_it_may_be() -> None:
    assert {"IT_PASSPORT", "IT_IDENTITY_CARD", "UK_PASSPORT"} <= {f.entity for f in readings("AA1234567")}
    assert [f.entity for f in readings("info@example.org")] == ["EMAIL_ADDRESS"]


def test_several_findings_come_in_order_and_do_not_overlap() -> None:
    found = scan("Card 4012 8888 8888 1881, IBAN DE89 3704 0044 0532 0130 00, phone (415) 555-0132, a@example.org")
    assert [f.entity for f in found] == ["CREDIT_CARD", "IBAN_CODE", "PHONE_NUMBER", "EMAIL_ADDRESS"]


@pytest.mark.parametrize("before", ["", "«", "««"])
@pytest.mark.parametrize("apart", [60, 150, 200, 300])
def test_places_to_look_at_that_reach_into_each_other_are_looked_at_once(before: str, apart: int) -> None:
    """Nothing ends between the two, so where to look for the first goes on to the end of the text."""
    code = "131052-308T"
    found = scan(f"{before}{code}{'=' * apart}{code}")
    at = len(before), len(before) + len(code) + apart
    assert [(f.entity, f.start, f.end) for f in found] == [
        ("FI_PERSONAL_IDENTITY_CODE", start, start + len(code)) for start in at
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Order 4155550132 ships on 2024-05-01 for $1,299.00.",
        "Reservation XEHM4B, flight HAT041, seat 12C, 3 bags, gate 21.",
        "Version 2.0.0 was released on 15.01.2024 at 12:34:56, build 20240115.1.",
        "Invoice 2024-000123, tracking 1Z999AA10123456784, SKU 123-45-678.",
        "It took 1718000000 ms; ids are 100000000001 and 100000000002.",
        "ISBN 978-3-16-148410-0, DOI 10.1000/182, commit 9fceb02d0ae598e95dc970b74767f19372d61af8.",
        "uuid 123e4567-e89b-12d3-a456-426614174000, 50% of 1,234,567.89 EUR",
        "Call f(x)[::2] in module a::b at 10:30, ratio 16:9.",
    ],
)
def test_ordinary_numbers_are_not_personal(text: str) -> None:
    assert scan(text) == []


def test_places_are_right_where_what_is_looked_at_runs_into_what_follows() -> None:
    text = "é 12345678Z" + "/-" * 150 + "12345678Z/12345678Z" + "!" * 40
    assert [text[f.start : f.end] for f in scan(text, entities=["ES_NIF"])] == ["12345678Z"] * 3


def test_text_without_utf8_and_empty_text() -> None:
    assert scan("") == []
    assert [f.entity for f in scan("\ud800 a@example.org")] == ["EMAIL_ADDRESS"]


@given(st.text(alphabet=st.characters(codec=None), max_size=200))
def test_any_text_can_be_scanned(text: str) -> None:
    ends = 0
    for found in scan(text):
        assert ends <= found.start < found.end <= len(text)
        ends = found.end


@pytest.mark.skipif(not CASES.exists(), reason="the shared recogniser cases are not beside this repository")
def test_at_least_95_percent_of_real_recogniser_cases_are_right() -> None:
    right = asked = placed = read = 0
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        wanted = set(case["entities"])
        if not wanted or not wanted <= set(entities()) or case.get("text") is None:
            continue
        found = scan(case["text"], entities=wanted)
        asked += 1
        right += len(found) == case["expected_len"]
        read += sum(f.entity in wanted for f in readings(case["text"])) == case["expected_len"]
        expected = case.get("expected_positions") or case.get("expected_res")
        placed += bool(expected) and [[f.start, f.end] for f in found] == expected
    assert asked >= 450
    assert right / asked >= 0.95
    assert read / asked >= 0.95
    assert placed >= 150


@pytest.mark.skipif(not TRAJECTORIES.exists(), reason="the shared trajectories are not beside this repository")
def test_real_airline_conversations_hold_no_false_alarm() -> None:
    texts = [
        message["content"]
        for line in TRAJECTORIES.read_text(encoding="utf-8").splitlines()
        for message in json.loads(line)["traj"]
        if message["role"] == "assistant" and message.get("content")
    ]
    assert len(texts) > 500
    assert [(f.entity, text[f.start : f.end]) for text in texts for f in scan(text)] == []


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("메일은 ada@example.org입니다", "EMAIL_ADDRESS"),
        ("电话+8613812345678，谢谢", "PHONE_NUMBER"),
        ("여권번호는 M123A4567입니다", "KR_PASSPORT"),
        ("カード4012888888881881です", "CREDIT_CARD"),
    ],
)
def test_letters_of_scripts_without_spaces_may_stand_next_to_a_number(text: str, entity: str) -> None:
    assert entity in {f.entity for f in readings(text)}


@pytest.mark.parametrize(
    "text", ["x[1::2] = y[::2]", "0.12345678j", "self.name = err.name(x)", "created at 1759223041"]
)
def test_what_is_in_code_is_no_personal_data(text: str) -> None:
    assert readings(text) == []


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("SSN 536\u201122\u20118726", "US_SSN"),
        ("(415)\u00a0555\u20110132", "PHONE_NUMBER"),
        ("card 4012\u202f8888\u202f8888\u202f1881.", "CREDIT_CARD"),
        (
            "card \uff14\uff10\uff11\uff12\uff18\uff18\uff18\uff18\uff18\uff18\uff18\uff18\uff11\uff18\uff18\uff11",
            "CREDIT_CARD",
        ),
        ("DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000", "IBAN_CODE"),
    ],
)
def test_typographic_dashes_spaces_and_digits_hide_nothing(text: str, entity: str) -> None:
    (found,) = scan(text)
    assert found.entity == entity
    assert found.end == len(text.rstrip("."))


YEAR = next(row for row in ROWS if row["id"] == "date-year")
YEARS, YEAR_RULE = Matcher([YEAR["pattern"]], together=False), rule_of(YEAR)


@given(st.text(alphabet="inIN xé中.,\n_1", max_size=8))
def test_a_year_is_found_right_behind_its_word_and_nowhere_else(front: str) -> None:
    text = f"{'words ' * 30}{front}1972 {'words ' * 30}"
    asked_everywhere = list(matches(YEAR_RULE, text, YEARS.places(0, Document(text))))
    assert [each for each in readings(text) if each.id == "date-year"] == asked_everywhere


@pytest.mark.parametrize("front", ["in ", "in  ", "IN\n", "begin  ", "in中"])
def test_words_right_in_front_of_a_year(front: str) -> None:
    assert [each.id for each in readings(f"{'words ' * 30}{front}1972 {'words ' * 30}")] == ["date-year"]


@pytest.mark.parametrize("text", ["1972", " " * 500 + "1972", "1972 1984\n" * 40, "536228726" + "\n" * 300])
def test_numbers_that_are_all_of_a_text_are_found_however_much_space_is_around_them(text: str) -> None:
    assert {each.id for each in readings(text)} & {"date-year", "us-ssn-bare"}
