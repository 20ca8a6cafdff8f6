from flakestorm.tape.heads import credential, is_silent, says_something
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
