import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.tokens import Limit, TokenMeter, count_tokens, cut_tokens

TEXTS = st.text(alphabet='abc1_ \n\t.,{}"é日\u00a0😀')


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("word", ["word"]),
        ("longer words", ["long", "er", " word", "s"]),
        ("Hello, you!", ["Hell", "o", ",", " you", "!"]),
        ("a   b", ["a", "   ", "b"]),
        (" \n\t ", [" \n\t "]),
        ("日本 語", ["日", "本", " 語"]),
        ('{"q":1}', ["{", '"', "q", '"', ":", "1", "}"]),
    ],
)
def test_what_a_token_is(text: str, tokens: list[str]) -> None:
    assert [cut_tokens(text, n) for n in range(1, len(tokens) + 1)] == [
        "".join(tokens[:n]) for n in range(1, len(tokens) + 1)
    ]
    assert count_tokens(text) == len(tokens)


@given(TEXTS, st.integers(0, 9))
def test_a_cut_is_a_prefix_of_exactly_as_many_tokens_as_asked_for(text: str, limit: int) -> None:
    cut = cut_tokens(text, limit)
    assert text.startswith(cut)
    assert count_tokens(cut) == min(limit, count_tokens(text))


@given(TEXTS)
def test_a_longer_text_never_has_fewer_tokens(text: str) -> None:
    counts = [count_tokens(text[:n]) for n in range(len(text) + 1)]
    assert counts == sorted(counts)


@given(st.lists(TEXTS), st.integers(0, 12) | st.none())
def test_a_text_in_pieces_is_cut_where_the_whole_text_is(pieces: list[str], limit: int | None) -> None:
    meter, taken = TokenMeter(limit), ""
    for piece in pieces:
        taken += (some := meter.take(piece))
        if len(some) < len(piece):
            break
    whole = "".join(pieces)
    assert taken == (whole if limit is None else cut_tokens(whole, limit))
    assert meter.count == count_tokens(taken)
    assert meter.full == (limit is not None and meter.count >= limit)


def test_another_part_begins_a_token_of_its_own() -> None:
    meter = TokenMeter(2)
    assert (meter.take("ab"), meter.take("cd")) == ("ab", "cd")
    assert meter.count == 1
    meter.part()
    assert (meter.take("ef"), meter.count, meter.full) == ("ef", 2, True)
    meter.part()
    assert meter.take("gh") == ""


def test_a_full_meter_still_lengthens_its_last_token() -> None:
    meter = TokenMeter(1)
    assert meter.take("ab") == "ab"
    assert meter.full
    assert meter.take("cdef") == "cd"


def test_what_is_beyond_the_limit_is_cut() -> None:
    limit = Limit(2)
    assert (limit.begin(), limit.take("one"), limit.take(" two three"), limit.cut) == (True, "one", " two", True)
    assert not limit.begin()
    assert Limit(None).take("any length") == "any length"
