from __future__ import annotations

import math
import re
from datetime import date, datetime

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.choices import Choices, Draw
from flakestorm.faults.falsehoods import dated, form_of, number, prose, word

SEEDS = st.integers(0, 2**32)


def draw(seed: int = 1) -> Draw:
    return Choices(seed).stream("test")


@given(st.integers() | st.integers(-50, 50), SEEDS)
def test_another_whole_number_is_whole_of_the_same_sign_and_near(was: int, seed: int) -> None:
    now = number(was, draw(seed))
    assert isinstance(now, int)
    assert now != was
    assert now > 0 if was >= 0 else now < 0
    if was > 20 and was < 10**9:
        assert 0.69 * was - 1 <= now <= 1.31 * was + 1


@given(st.floats(allow_nan=False, allow_infinity=False), SEEDS)
def test_another_decimal_is_finite_and_keeps_sign_and_range(was: float, seed: int) -> None:
    now = number(was, draw(seed))
    assert isinstance(now, float)
    assert math.isfinite(now)
    if abs(was) > 1e-300:
        assert now != was
        assert math.copysign(1, now) == math.copysign(1, was)
    if 0 < was < 1:
        assert 0 <= now < 1


@pytest.mark.parametrize(("was", "places"), [(120.5, 1), (19.99, 2), (0.125, 3), (3.0, 1)])
def test_decimals_stay_as_many_where_that_is_enough(was: float, places: int) -> None:
    for seed in range(50):
        now = repr(number(was, draw(seed)))
        assert len(now.partition(".")[2]) <= places + 2


def test_moments_and_years_stay_believable() -> None:
    for seed in range(50):
        assert 0 < 1_700_000_000 - number(1_700_000_000, draw(seed)) <= 30 * 86_400
        assert 0 < 1_700_000_000_000 - number(1_700_000_000_000, draw(seed)) <= 30 * 86_400_000
        assert 0 < abs(2024 - number(2024, draw(seed))) <= 3


@given(st.dates(date(1000, 3, 1)), SEEDS)
def test_a_date_becomes_an_earlier_date(was: date, seed: int) -> None:
    now = dated(was.isoformat(), draw(seed))
    assert now is not None
    assert 1 <= (was - date.fromisoformat(now)).days <= 30


@given(st.datetimes(datetime(1000, 3, 1)), st.sampled_from(["", "Z", "+02:00"]), SEEDS)
def test_a_moment_keeps_its_time_and_its_offset(was: datetime, offset: str, seed: int) -> None:
    text = was.isoformat() + offset
    now = dated(text, draw(seed))
    assert now is not None
    assert now[:10] < text[:10]
    assert now[10:] == text[10:]


@pytest.mark.parametrize("was", ["29/02/2024", "2.1.2023", "12/31/1999", "02/29/2000"])
def test_other_notations_of_dates_change_their_year_and_stay_dates(was: str) -> None:
    for seed in range(30):
        now = dated(was, draw(seed))
        assert now is not None
        assert now[:-4] == was[:-4]
        assert now != was
        if "29" in was[:-4] and "02" in was[:-4]:
            date(int(now[-4:]), 2, 29)


@pytest.mark.parametrize("was", ["09:05", "9:05", "23:59:59", "12:30 PM", "1:00am", "08:15:00.5Z", "00:00:00+01:00"])
def test_a_time_moves_to_another_hour_of_the_same_clock(was: str) -> None:
    for seed in range(30):
        now = dated(was, draw(seed))
        assert now is not None
        assert now != was
        assert now.partition(":")[2] == was.partition(":")[2]
        assert 0 <= int(now.partition(":")[0]) <= (12 if "m" in was.lower() else 23)


@pytest.mark.parametrize("was", ["2024-02-30", "25:00", "13:00 pm", "Oslo", "", "1:2"])
def test_what_is_no_date_has_no_other(was: str) -> None:
    assert dated(was, draw()) is None


@pytest.mark.parametrize(
    "was",
    [
        "HAT170",
        "BA 12",
        "sara_doe_496",
        "$120.50",
        "+47 123 45 678",
        "a1@example.com",
        "v1.2.3",
        "9f8e7d",
        "P3D",
        "45%",
    ],
)
def test_an_identifier_becomes_another_of_its_shape(was: str) -> None:
    for seed in range(30):
        now = word(was, draw(seed))
        assert now is not None
        assert now != was
        assert re.sub(r"\d", "0", now) == re.sub(r"\d", "0", was)


@pytest.mark.parametrize(
    ("was", "kind"),
    [
        ("2024-05-01", "date"),
        ("2024-05-01T10:00:00Z", "date-time"),
        ("10:00:00Z", "time"),
        ("user7@example.com", "email"),
        ("10.0.0.255", "ipv4"),
        ("123e4567-e89b-12d3-a456-426614174000", "uuid"),
        ("ABCDEFAB-CDEF-4BCD-AFAB-CDEFABCDEFAB", "uuid"),
        ("P3DT4H", "duration"),
    ],
)
def test_a_format_is_kept(was: str, kind: str) -> None:
    check = jsonschema.Draft202012Validator(
        {"format": kind}, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    for seed in range(30):
        now = word(was, draw(seed))
        assert now not in (None, was)
        assert check.is_valid(now)


@pytest.mark.parametrize("was", ["Oslo", "", "https://x.test/1", "2024-99-99", "x" * 60 + "12345"])
def test_a_word_an_address_and_a_long_thing_have_no_other(was: str) -> None:
    assert word(was, draw()) is None


TEXT = "Flight BA117 leaves at 14:30 on 2024-05-20 and costs 1,240.50 EUR; see https://x.test/7 or mail a9@x.test."


def test_a_text_is_false_in_as_many_places_as_asked_and_says_where() -> None:
    for seed in range(50):
        now, changes = prose(TEXT, draw(seed), 2)
        assert len(changes) == 2
        again = TEXT
        for old, new in changes:
            assert old in TEXT
            assert new in now
            again = again.replace(old, new, 1)
        assert now == again
        assert "https://x.test/7" in now
        assert "a9@x.test" in now


def test_mark_up_stays() -> None:
    page = "<h1 id='a22'>Price</h1><script>var n = 5551;</script><!-- 7771 --><p>Only 120 left &#39;today&#39;</p>"
    for seed in range(30):
        now, changes = prose(page, draw(seed), 3)
        assert [old for old, _ in changes] == ["120"]
        assert now == page.replace("120", changes[0][1])


def test_single_digits_count_where_there_is_nothing_longer() -> None:
    assert prose("1. Oslo\n2. Bergen 250 km", draw(), 3)[1][0][0] == "250"
    assert len(prose("3 flights", draw(), 3)[1]) == 1
    assert prose("booked!", draw(), 3) == ("booked!", [])


@given(st.text(), SEEDS)
def test_any_text_can_be_asked(text: str, seed: int) -> None:
    now, changes = prose(text, draw(seed), 3)
    assert bool(changes) == (now != text)
    word(text, draw(seed))
    form_of(text)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Oslo", "New York", True),
        ("Oslo", "economy", False),
        ("open", "high", False),
        ("2024-05-01", "1990-12-31", True),
        ("2024-05-01", "2024-05-01T10:00:00Z", False),
        ("HAT170", "HAT023", True),
        ("HAT170", "x1", False),
        ("10:00", "11:30", True),
    ],
)
def test_only_like_is_like(one: str, other: str, alike: bool) -> None:
    assert (form_of(one) == form_of(other) != "") is alike
