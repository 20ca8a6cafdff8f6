from math import isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flakestorm.wire.limits import asked_wait_ms, refuses

NOW = ("Date", "Fri, 02 Jan 2026 03:04:05 GMT")


@pytest.mark.parametrize(
    ("headers", "wait_ms"),
    [
        ((), None),
        ((("Retry-After", "2"),), 2000),
        ((("retry-after", "0.5"),), 500),
        ((("retry-after-ms", "50"), ("retry-after", "1")), 50),
        ((("retry-after-ms", "soon"), ("retry-after", "1")), 1000),
        ((NOW, ("Retry-After", "Fri, 02 Jan 2026 03:04:35 GMT")), 30_000),
        ((NOW, ("Retry-After", "Fri, 02 Jan 2026 03:00:00 GMT")), 0),
        ((("Retry-After", "Fri, 02 Jan 2026 03:04:35 GMT"),), None),  # nobody says what time it is there
        ((("Retry-After", "later"),), None),
        ((("Retry-After", "-1"),), None),
        ((("Retry-After", "inf"),), None),
        ((("x-ratelimit-reset-requests", "120ms"), ("x-ratelimit-reset-tokens", "6m0s")), 360_000),
        (
            (
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "1.5s"),
                ("x-ratelimit-remaining-tokens", "9"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ),
            1500,
        ),
        ((NOW, ("anthropic-ratelimit-input-tokens-reset", "2026-01-02T03:04:15Z")), 10_000),
        ((NOW, ("x-ratelimit-reset", "1767323055")), 10_000),  # GitHub: a Unix time
        ((("x-ratelimit-reset", "17"),), 17_000),
        ((("ratelimit-reset", "3"),), 3000),
        ((("x-ratelimit-reset-requests", "1 fortnight"),), None),
        ((NOW, ("x-ratelimit-reset", "1e300")), pytest.approx(1e14, rel=0.1)),
    ],
)
def test_how_long_a_reply_asks_to_wait(headers, wait_ms: float | None) -> None:
    assert asked_wait_ms(headers) == wait_ms


@pytest.mark.parametrize(
    ("status", "headers", "refused"),
    [
        (429, (), True),
        (503, (), False),  # an outage, which waiting need not end
        (503, (("retry-after", "1"),), True),
        (529, (("retry-after", "1"),), True),
        (529, (), False),
        (200, (("retry-after", "1"), ("x-ratelimit-reset-requests", "1s")), False),
        (500, (("retry-after", "1"),), False),
    ],
)
def test_which_replies_refuse_a_call_for_its_rate(status: int, headers, refused: bool) -> None:
    assert refuses(status, headers) is refused


NAMES = ("Retry-After", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens", "Date")
FORMS = r"[A-Z][a-z]{2}, \d{1,3} [A-Z][a-z]{2} \d{1,6} \d\d:\d\d:\d\d( GMT| [+-]\d{1,30})?|\d{1,400}(s|ms|h)?|.*"


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.text() | st.from_regex(FORMS, fullmatch=True))))
@example([NOW, ("Retry-After", f"Fri, 02 Jan 2026 03:04:05 +{'9' * 30}")])
@example([("x-ratelimit-reset", f"{'9' * 400}s")])
@example([("Retry-After", "1e308")])
def test_whatever_anybody_writes_is_a_wait_or_none(headers) -> None:
    found = asked_wait_ms(tuple(headers))
    assert found is None or (isfinite(found) and found >= 0)
    assert refuses(429, tuple(headers))
