from flakestorm.tape.heads import credential, is_silent, says_something, says_the_same
from replay_support import HEADERS


def test_headers_that_say_how_to_behave_count() -> None:
    assert says_something((*HEADERS, ("Anthropic-Version", "2023-06-01"), ("X-Stainless-Lang", "python"))) == (
        ("anthropic-version", "2023-06-01"),
        ("content-type", "application/json"),
    )


def test_who_asks_is_told_by_credentials_that_stay() -> None:
    one, other = (
        (("Authorization", "Bearer a"), ("x-api-key", "b")),
        (("x-api-key", "b"), ("authorization", "Bearer a")),
    )
    assert credential(one) == credential(other) != credential(one[:1])
    assert credential((("cookie", "a=b"),)) == ""


def test_fields_that_say_nothing() -> None:
    assert all(map(is_silent, ("Content-Length", "X-Request-Id", "x-stainless-retry-count", "traceparent")))
    assert not any(map(is_silent, ("anthropic-beta", "content-type", "accept")))


def test_a_head_says_the_same_but_for_what_says_nothing() -> None:
    before = (
        *HEADERS,
        ("anthropic-version", "2023-06-01"),
        ("Content-Length", "4"),
        ("x-api-key", "[secret:aaaaaaaa]"),
    )
    assert says_the_same((*before[:-2], ("Content-Length", "5"), before[-1]), before)
    assert not says_the_same((*before[:-2], ("content-length", "4"), before[-1]), before)  # a name, spelled otherwise
    assert not says_the_same((*before[:-1], ("x-api-key", "[secret:bbbbbbbb]")), before)
    assert not says_the_same((*before[:-3], ("anthropic-version", "2024"), *before[-2:]), before)
    assert not says_the_same(before[:-1], before)
