from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape.tokens import _TIME, _TOKEN, RPC, Span, Token, Tokens, scan_reply
from replay_support import RECORDED_S, SPANS

NOW = datetime.fromtimestamp(RECORDED_S, UTC)


def kinds(text: str, name: str = "") -> list[str]:
    found: list[Token] = []
    Tokens(SPANS).text(text, found, name)
    return [token.kind for token in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("order 0b8e8f52-6c3e-4c8e-9d43-7a5d0e1a2b3c", ["uuid"]),
        ("pyd_ai_0b8e8f526c3e4c8e9d437a5d0e1a2b3c", ["uuid"]),
        ("md5 0b8e8f526c3ec0de0d437a5d0e1a2b3c", []),
        ("call_abcDEF123456 and toolu_01AbCdEfGh", ["id", "id"]),
        ("tooluse_BvssH5zaRF-PkYOc3BF_JA, mcptoolu_015oTj2fXVKL", ["id", "id"]),
        ("tooluse_statistics_of_may", []),
        ("call_customer_service or msg_template", []),
        ("chatcmpl-AbC123xyz", ["id"]),
        (f"at {NOW.isoformat()}", ["iso"]),
        (f"{NOW:%Y-%m-%d %H:%M}", ["iso"]),
        ("departs 2024-05-20T10:00:00", []),
        ("logged 2024-05-20T10:00:37.123Z", ["iso"]),
        ("the current time is 2024-05-20T10:00", ["iso"]),
        ("Mon, 20 May 2024 10:00:37 GMT", ["rfc"]),
        ("on 2024-05-20", []),
        (f"Today is {NOW:%Y-%m-%d}", ["day"]),
        (f"sent {int(RECORDED_S)}", ["epoch"]),
        (f"sent {int(RECORDED_S * 1000)}", ["epoch"]),
        ("order 1700000001", []),
        ("order 12345678901", []),
        ("/tmp/tmpab12cd34/notes.txt", ["path"]),
        ("/tmp/report.txt", []),
        ("http://127.0.0.1:8401/v1", ["port"]),
        ("http://example.com:8401/v1", []),
        ("9999-99-99T99:99:99", []),
    ],
)
def test_what_is_volatile(text, expected) -> None:
    assert kinds(text) == expected


def test_some_fields_hold_nothing_else() -> None:
    tokens = Tokens(SPANS)
    assert tokens.field("created", 1600000000) == Token("epoch", "1600000000")
    assert tokens.field("order", 1600000000) is None
    assert tokens.field("request_id", "r-1") == Token("id", "r-1")
    assert tokens.field("requestId", 17) == Token("id", "17")
    assert tokens.field(RPC, 3) == Token("rpc", "3")
    assert tokens.field("city", "Oslo") is None


def test_local_time_counts_where_no_zone_is_said() -> None:
    span = Span(RECORDED_S, RECORDED_S, offset_s=7200)
    local = datetime.fromtimestamp(RECORDED_S + 7200, UTC).replace(tzinfo=None, second=0)
    found: list[Token] = []
    Tokens((span,)).text(f"{local:%Y-%m-%dT%H:%M}", found)
    assert [token.now for token in found] == [True]


def test_tokens_of_a_reply_are_those_that_are_no_times() -> None:
    text = f"x call_abcDEF123456 at {NOW.isoformat()}"
    assert scan_reply(text) == [(2, 19, "call_abcDEF123456")]
    assert scan_reply("nothing") == []


WORDS = [
    *("0b8e8f52-6c3e-4c8e-9d43-7a5d0e1a2b3c", "0b8e8f526c3e4c8e9d437a5d0e1a2b3c", "call_abcDEF123456", "call_template"),
    *("tooluse_BvssH5zaRF-PkYOc3BF_JA", "mcptoolu_015oTj2fXVKL"),
    *(
        "chatcmpl-AbC123xyz",
        "/tmp/tmpab12cd34",
        "/tmp/tmp.AbCdEf12",
        "/pytest-12/",
        "http://127.0.0.1:8401",
        "[::1]:99",
    ),
    *("localhost:1", "x", "é", "\U0001f600", '"', " ", "-", "_", "\n", "0123456789abcdef" * 3, "2026-05-20T10:00:37Z"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=9).map("".join))
def test_no_token_of_a_reply_is_overlooked(text: str) -> None:
    every = [(found.start(), found.end(), found[0]) for found in _TOKEN.finditer(text) if found.lastgroup not in _TIME]
    assert scan_reply(text) == every
