from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape import redact
from flakestorm.tape.redact import REDACTED

SECRET = "sk-live-0123456789"


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "proxy-authorization",
        "X-Api-Key",
        "api-key",
        "x-goog-api-key",
        "Cookie",
        "set-cookie",
        "X-Auth-Token",
        "x-amz-security-token",
    ],
)
def test_credentials_and_cookies_are_taken_out_of_headers(name: str) -> None:
    fields = (("accept", "*/*"), (name, SECRET), ("content-type", "text/plain"))
    assert redact.headers(fields) == (("accept", "*/*"), (name, REDACTED), ("content-type", "text/plain"))
    assert redact.headers(fields) == redact.headers(fields)  # what was learned about a name does not change the answer


def test_several_secrets_are_all_taken_out_and_the_rest_is_the_same() -> None:
    plain = ("accept", "*/*")
    fields = (("Authorization", SECRET), plain, ("cookie", SECRET), ("x-api-key", SECRET))
    assert redact.headers(fields) == (
        ("Authorization", REDACTED),
        plain,
        ("cookie", REDACTED),
        ("x-api-key", REDACTED),
    )
    assert redact.headers((plain,)) == (plain,)
    assert redact.headers(()) == ()


@pytest.mark.parametrize(
    "name", ["content-type", "Idempotency-Key", "x-ratelimit-remaining-tokens", "openai-organization", "x-request-id"]
)
def test_other_headers_stay(name: str) -> None:
    assert redact.headers(((name, "12345678"),)) == ((name, "12345678"),)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("https://api.test/v1?q=oslo&page=2", "https://api.test/v1?q=oslo&page=2"),
        (f"https://api.test/v1?key={SECRET}", f"https://api.test/v1?key={REDACTED}"),
        (
            f"https://api.test/v1?q=1&api_key={SECRET}&page=2#top",
            f"https://api.test/v1?q=1&api_key={REDACTED}&page=2#top",
        ),
        (
            f"https://api.test/?accessToken={SECRET};sig={SECRET}",
            f"https://api.test/?accessToken={REDACTED};sig={REDACTED}",
        ),
        ("https://api.test/?key=name", "https://api.test/?key=name"),
        ("https://api.test/?sort_key=departure_time", "https://api.test/?sort_key=departure_time"),
        ("https://api.test/?monkey=capuchin-monkeys", "https://api.test/?monkey=capuchin-monkeys"),
        ("https://api.test/?max_tokens=1000000000", "https://api.test/?max_tokens=1000000000"),
        (f"https://ann:{SECRET}@api.test/v1", f"https://{REDACTED}@api.test/v1"),
        (f"https://ann:p@ss@{SECRET}@api.test/v1", f"https://{REDACTED}@api.test/v1"),
        (
            "https://api.test/users/ann@test.org?mail=ann@test.org",
            "https://api.test/users/ann@test.org?mail=ann@test.org",
        ),
        ("search", "search"),
    ],
)
def test_urls_keep_what_is_no_secret(before: str, after: str) -> None:
    assert redact.url(before) == after


@pytest.mark.parametrize(
    "name", ["key", "API_KEY", "apiKey", "client.secret", "X-Token", "Password", "APIKey", "db-pwd"]
)
def test_names_of_secrets(name: str) -> None:
    assert redact.is_secret_name(name)


@pytest.mark.parametrize("name", ["", "keys", "keyboard", "tokens", "max_tokens", "primary_key", "idempotencyKey", "q"])
def test_names_of_other_things(name: str) -> None:
    assert not redact.is_secret_name(name)


@given(st.text())
def test_any_text_is_taken_for_a_url(text: str) -> None:
    assert isinstance(redact.url(text), str)


@given(st.lists(st.tuples(st.text(), st.text())).map(tuple))
def test_header_names_and_their_order_stay(fields: tuple[tuple[str, str], ...]) -> None:
    assert [name for name, _ in redact.headers(fields)] == [name for name, _ in fields]
