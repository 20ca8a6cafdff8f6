import gzip
import json
from math import isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flakestorm.core.call import Call
from flakestorm.core.stream import read
from flakestorm.wire.base import Failure
from flakestorm.wire.limits import asked_wait_ms, may_refuse, refuses, told_wait_ms
from flakestorm.wire.provider_errors import google_error
from wire_support import DATA

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


OPENAI = (
    NOW,
    ("Content-Type", "application/json"),
    ("x-ratelimit-limit-requests", "500"),
    ("x-ratelimit-limit-tokens", "30000"),
    ("x-ratelimit-remaining-requests", "499"),
    ("x-ratelimit-remaining-tokens", "0"),
    ("x-ratelimit-reset-requests", "120ms"),
    ("x-ratelimit-reset-tokens", "12.172s"),
)
AZURE = (NOW, ("retry-after", "26"), ("retry-after-ms", "25600"), ("x-ratelimit-reset-requests", "26"))
ANTHROPIC = (
    NOW,
    ("retry-after", "17"),
    ("anthropic-ratelimit-requests-limit", "50"),
    ("anthropic-ratelimit-requests-remaining", "0"),
    ("anthropic-ratelimit-requests-reset", "2026-01-02T03:04:22Z"),
    ("anthropic-ratelimit-output-tokens-remaining", "8000"),
    ("anthropic-ratelimit-output-tokens-reset", "2026-01-02T03:09:05Z"),
)


@pytest.mark.parametrize(
    ("headers", "wait_ms"),
    [
        (OPENAI, 12_172),
        ((*OPENAI, ("retry-after", "13"), ("retry-after-ms", "12172")), 12_172),
        (AZURE, 25_600),
        (ANTHROPIC, 17_000),
        (tuple(field for field in ANTHROPIC if field[0] != "retry-after"), 17_000),
    ],
)
def test_what_providers_say_in_their_heads(headers, wait_ms: float) -> None:
    assert (asked_wait_ms(headers), refuses(429, headers)) == (wait_ms, True)


def google(delay: object, *, kind: str = "type.googleapis.com/google.rpc.RetryInfo") -> dict[str, object]:
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []}]
    return {"error": {"code": 429, "details": [*details, {"@type": kind, "retryDelay": delay}]}}


@pytest.mark.parametrize(
    ("document", "wait_ms"),
    [
        (google("12s"), 12_000),
        ([google("34.4s")], 34_400),  # where the answer would have been a list, and where it speaks as OpenAI does
        (google("0s"), 0),
        (google("soon"), None),
        (google(12), None),
        (google("12s", kind="type.googleapis.com/google.rpc.Help RetryInfo"), None),
        ({"error": "RetryInfo"}, None),
        ({"error": {"details": "RetryInfo"}}, None),
        ("RetryInfo", None),
        ({"text": "the RetryInfo says 12s"}, None),
    ],
)
def test_google_says_it_in_the_body(document: object, wait_ms: float | None) -> None:
    body = json.dumps(document).encode()
    assert told_wait_ms((), body) == wait_ms
    assert told_wait_ms((("Content-Encoding", "gzip"),), gzip.compress(body)) == wait_ms
    assert told_wait_ms((), body + b" " * 70_000) is None


@pytest.mark.skipif(not DATA.exists(), reason="the folder with real data is not here")
def test_a_body_that_was_recorded_names_its_time() -> None:
    recorded = DATA / "wire/vercel__ai/packages/google/src/__fixtures__/google-429-retry-info.json"
    assert told_wait_ms((), recorded.read_bytes()) == 34_400


@pytest.mark.parametrize("listed", [False, True])
def test_what_a_fault_says_for_google_is_read_as_google_is(listed: bool) -> None:
    reply = google_error(Failure("rate_limit", retry_after_ms=1500), model="m", call=Call("POST", "x"), listed=listed)
    assert told_wait_ms(reply.headers, read(reply)) == 1500


@given(st.binary() | st.text().map(lambda text: json.dumps(google(text)).encode()))
@example(b"RetryInfo")
@example(b"[" * 60_000 + b"RetryInfo")
@example(json.dumps(google(f"{'9' * 400}s")).encode())
def test_whatever_a_body_holds_is_a_wait_or_none(body: bytes) -> None:
    found = told_wait_ms((), body)
    assert found is None or (isfinite(found) and found >= 0)


def test_which_replies_may_name_a_time_in_their_body() -> None:
    assert [status for status in range(100, 600) if may_refuse(status)] == [429, 503, 529]
