import pytest

from contracts_support import call
from flakestorm.contracts.failures import ENGLISH, admission, call_failed, result_failed, sounds_failed
from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.wire.results import Told


@pytest.mark.parametrize(
    "text",
    [
        "Error: reservation not found",
        "error - no such user",
        "  [ERROR] timed out",
        "Traceback (most recent call last):\n  File",
        "ValueError: bad date",
        "requests.ConnectionError: refused",
        '{"error": {"code": 503}}',
        '{"success": false}',
        '{"status": "failed", "id": 3}',
        '{"isError": true}',
    ],
)
def test_the_words_of_a_failure(text: str) -> None:
    assert sounds_failed(text)
    assert result_failed(Told(text))


@pytest.mark.parametrize(
    "text",
    [
        "3 flights",
        "",
        "null",
        '{"error": null, "hits": 3}',
        '{"errors": []}',
        '{"status": "ok"}',
        "No errors found",
        "[",
        "Errorless since 1999: our airline",
        '{"broken',
    ],
)
def test_the_words_of_a_success(text: str) -> None:
    assert not sounds_failed(text)
    assert not result_failed(Told(text))


def reply(status: int = 200, body: bytes = b"{}", **more: object) -> Exchange:
    return call("tool", "t", reply=Recorded(status, chunks=[body], **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("exchange", "failed"),
    [
        (reply(), False),
        (reply(503), True),
        (reply(404), True),
        (reply(0, error="CallFailed: timeout"), True),
        (reply(end="broken"), True),
        (reply(body=b'{"error": "down"}'), True),
    ],
)
def test_a_reply_says_whether_the_call_failed(exchange: Exchange, failed: bool) -> None:
    assert call_failed(exchange) is failed


def test_a_fault_that_takes_the_reply_away_is_a_failure_and_a_lie_is_not() -> None:
    for mode, failed in (("malformed", True), ("empty", True), ("wrong_value", False), ("slow", False)):
        hit = reply()
        hit.faults = (Firing(Site("tool", "t", 1), mode, "tool"),)
        assert call_failed(hit) is failed, mode


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry, the flight search is unavailable at the moment.",
        "I found flight SK4521, but I could not book it: the booking desk is down.",
        "I couldn't retrieve your reservation.",
        "I can’t access the booking system right now.",
        "We're experiencing technical difficulties.",
        "The search timed out. Please try again later.",
        "There was an error while processing your payment.",
        "Your card was not charged because the payment service did not respond.",
        "I was unable to find it.",
        "The booking wasn't completed.",
        "It seems the system is temporarily down.",
    ],
)
def test_admissions(text: str) -> None:
    assert admission(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Your flight SK4521 to Oslo is booked. The airline will send the confirmation by e-mail.",
        "Sorry for the wait! Your flight is booked.",
        "Everything went through without any problems.",
        "The payment was processed with no errors.",
        "The cheapest flight to Oslo is SK4521 for 129 EUR.",
    ],
)
def test_no_admissions(text: str) -> None:
    assert admission(text) is None


def test_other_languages_are_told_apart() -> None:
    assert ENGLISH.search("Your flight is booked.")
    assert not ENGLISH.search("Der Flug konnte leider nicht gebucht werden.")
