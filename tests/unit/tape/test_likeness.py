import pytest

from flakestorm.tape.likeness import LEAST
from replay_support import against, chat, exchange, matcher, request

LONG = "Please find me a cheap flight that goes to the lovely city of Oslo, in the early morning if you can. "


def test_a_reworded_request_may_pass() -> None:
    match = against(exchange(0, chat(LONG)), request(chat(LONG.replace("lovely", "pretty"))), "scored")
    assert match.outcome == "tolerated"
    assert float(match.details[0].removeprefix("score ")) >= LEAST


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cheap", "cheap 2"),
        ("if you", "if not you"),
        ("Oslo", '"Oslo"'),
        ("Oslo", "/etc/oslo"),
        ("cheap", "cheap_one"),
        ("Oslo", "OSL"),
        (LONG, "Tell me about the weather. "),
    ],
)
def test_what_counts_may_not_change(old, new) -> None:
    match = against(exchange(0, chat(LONG)), request(chat(LONG.replace(old, new))), "scored")
    assert match.outcome == "diverged"


def test_it_must_be_clearly_one() -> None:
    two = matcher(
        exchange(0, chat(LONG.replace("lovely", "pretty"))),
        exchange(1, chat(LONG.replace("lovely", "great"))),
        mode="scored",
    )
    assert two.match(request(chat(LONG)), "1").outcome == "diverged"


def test_other_modes_do_not_ask() -> None:
    match = against(exchange(0, chat(LONG)), request(chat(LONG.replace("lovely", "pretty"))))
    assert match.outcome == "diverged"
