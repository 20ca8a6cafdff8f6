from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape import redact
from flakestorm.tape.redact import REDACTED, Redactor, secrets_of

SECRET = "hunter2-0123456789"


@pytest.fixture
def redactor() -> Redactor:
    return Redactor("0" * 32, known=())


def stands(redactor: Redactor, secret: str = SECRET) -> str:
    return redactor.placeholder(secret.encode()).decode()


@pytest.mark.parametrize(
    "name", ["X-Api-Key", "api-key", "x-goog-api-key", "X-Auth-Token", "x-amz-security-token", "authorization"]
)
def test_credentials_are_taken_out_of_headers(redactor: Redactor, name: str) -> None:
    fields = (("accept", "*/*"), (name, SECRET), ("content-type", "text/plain"))
    clean = redactor.headers(fields)
    assert clean == (("accept", "*/*"), (name, stands(redactor)), ("content-type", "text/plain"))
    assert redactor.headers(clean) == clean


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("Authorization", f"Bearer {SECRET}", "Bearer {}"),
        ("Proxy-Authorization", f"Basic {SECRET}", "Basic {}"),
        ("Cookie", f"theme=; id={SECRET}; sid={SECRET}", "theme=; id={}; sid={}"),
        ("Set-Cookie", f"id={SECRET}; Path=/; HttpOnly", "id={}; Path=/; HttpOnly"),
        ("x-trace", f"key {SECRET} was used", "key {} was used"),
    ],
)
def test_what_is_not_secret_in_a_header_stays(redactor: Redactor, name: str, before: str, after: str) -> None:
    redactor.learn(SECRET.encode())
    clean = redactor.headers(((name, before),))
    assert clean == ((name, after.replace("{}", stands(redactor))),)
    assert redactor.headers(clean) == clean


@pytest.mark.parametrize(
    "name", ["content-type", "Idempotency-Key", "x-ratelimit-remaining-tokens", "openai-organization", "x-request-id"]
)
def test_other_headers_stay(redactor: Redactor, name: str) -> None:
    fields = ((name, "12345678"),)
    assert redactor.headers(fields) is fields


def test_equal_secrets_are_equal_and_different_ones_different() -> None:
    one, again, other = Redactor("1" * 32, known=()), Redactor("1" * 32, known=()), Redactor("2" * 32, known=())
    body = json.dumps({"api_key": SECRET, "second": f"is {SECRET}", "password": "another-one"}).encode()
    clean = json.loads(one.body(body))
    assert clean["second"] == f"is {clean['api_key']}"
    assert clean["api_key"] != clean["password"]
    assert json.loads(again.body(body)) == clean
    assert json.loads(other.body(body)) != clean


@pytest.mark.parametrize(
    "text",
    [
        '{"api_key": "%s"}',
        '{"a": {"clientSecret":\n "%s"}}',
        '{"arguments": "{\\"db_password\\": \\"%s\\"}"}',
        '{"deep": "{\\"in\\": \\"{\\\\\\"token\\\\\\": \\\\\\"%s\\\\\\"}\\"}"}',
        "grant_type=refresh&client_secret=%s&x=1",
        '{"stdout": "PATH=/bin\\nDB_PASSWORD=%s\\n"}',
        '{"url": "https://x.test/?q=1&access_token=%s"}',
        '{"url": "postgres://ann:%s@db.test/x"}',
        '{"headers": {"Authorization": "Bearer %s"}}',
        "{'password': '%s'}",
        "DB_PASSWORD_PROD=%s",
    ],
)
def test_values_of_what_is_named_like_a_secret(redactor: Redactor, text: str) -> None:
    clean = redactor.body((text % SECRET).encode() + b" and " + SECRET.encode())
    assert SECRET.encode() not in clean
    assert clean.endswith(b" and " + stands(redactor).encode())
    assert redactor.body(clean) is clean


@pytest.mark.parametrize(
    "text",
    [
        '{"max_tokens": 1000000000, "tokens": "12345678"}',
        '{"key": "short", "sort_key": "departure_time", "idempotency_key": "0123456789abcdef"}',
        '{"logprobs": [{"token": " departure", "logprob": -0.1}]}',
        '{"properties": {"api_key": {"type": "string"}}, "required": ["api_key"]}',
        '{"type": "thinking", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}',
        '{"key": "messages", "messages": []}',
        "a task-force-of-the-risk-department met",
    ],
)
def test_what_only_looks_like_it_stays(redactor: Redactor, text: str) -> None:
    body = text.encode()
    assert redactor.body(body) is body


@pytest.mark.parametrize("secret", ['with"quote\\and', "pässwörter", "a/b+c=d&e f", "line\nbreaks\nin it"])
def test_a_secret_is_found_in_every_spelling(redactor: Redactor, secret: str) -> None:
    redactor.learn(secret.encode())
    once, ascii_, twice = (
        json.dumps(secret, ensure_ascii=False),
        json.dumps(secret),
        json.dumps(json.dumps(secret)),
    )
    for text in (secret, once, ascii_, twice):
        assert stands(redactor, secret) in redactor.text(f"<{text}>")


def test_longer_secrets_go_first(redactor: Redactor) -> None:
    for secret in (b"abcdefgh", b"abcdefgh-ijkl"):
        redactor.learn(secret)
    assert redactor.text("abcdefgh-ijkl abcdefgh") == (
        f"{stands(redactor, 'abcdefgh-ijkl')} {stands(redactor, 'abcdefgh')}"
    )


def test_the_environment_is_a_source() -> None:
    environ = {
        "OPENAI_API_KEY": "key-of-openai",
        "PWD": "/work/somewhere",
        "SHORT_KEY": "abc",
        "DATABASE_URL": "postgres://ann:secret-word@db/x",
        "EDITOR": "ed-and-friends",
    }
    assert secrets_of(environ) == ["key-of-openai", "secret-word"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("https://api.test/v1?q=oslo&page=2", "https://api.test/v1?q=oslo&page=2"),
        (f"https://api.test/v1?key={SECRET}", "https://api.test/v1?key={}"),
        (f"https://api.test/v1?q=1&api_key={SECRET}&page=2#top", "https://api.test/v1?q=1&api_key={}&page=2#top"),
        (f"https://api.test/?accessToken={SECRET};sig={SECRET}", "https://api.test/?accessToken={};sig={}"),
        ("https://api.test/?key=name", "https://api.test/?key=name"),
        ("https://api.test/?sort_key=departure_time", "https://api.test/?sort_key=departure_time"),
        ("https://api.test/?monkey=capuchin-monkeys", "https://api.test/?monkey=capuchin-monkeys"),
        ("https://api.test/?max_tokens=1000000000", "https://api.test/?max_tokens=1000000000"),
        (f"https://{SECRET}@api.test/v1", "https://{}@api.test/v1"),
        ("https://api.test/users/ann@test.org?m=ann@test.org", "https://api.test/users/ann@test.org?m=ann@test.org"),
        ("search", "search"),
    ],
)
def test_urls_keep_what_is_no_secret(redactor: Redactor, before: str, after: str) -> None:
    clean = redactor.url(before)
    assert clean == after.replace("{}", stands(redactor))
    assert redactor.url(clean) == clean
    assert redact.url(before) == after.replace("{}", REDACTED)


def test_a_password_in_a_url_is_known_from_then_on(redactor: Redactor) -> None:
    clean = redactor.url(f"https://ann:{SECRET}@api.test/v1")
    assert SECRET not in clean
    assert "ann:" not in clean
    assert redactor.text(f"it was {SECRET}") == f"it was {stands(redactor)}"


def test_what_is_shown_without_a_tape_has_no_key(redactor: Redactor) -> None:
    redactor.learn(SECRET.encode())
    assert redactor.hidden(f"python agent.py {SECRET}") == f"python agent.py {REDACTED}"


@given(st.text())
def test_any_text_is_taken_for_a_url(text: str) -> None:
    assert isinstance(Redactor("0" * 32, known=()).url(text), str)
    assert isinstance(redact.url(text), str)


@given(st.lists(st.tuples(st.text(), st.text())).map(tuple))
def test_header_names_and_their_order_stay(fields: tuple[tuple[str, str], ...]) -> None:
    assert [name for name, _ in Redactor("0" * 32, known=()).headers(fields)] == [name for name, _ in fields]


@given(st.binary(max_size=300))
def test_cleaning_what_is_clean_changes_nothing(body: bytes) -> None:
    redactor = Redactor("0" * 32, known=("abcdefgh",))
    clean = redactor.body(body + b' "token": "abcdefghij" ' + body)
    assert redactor.body(clean) == clean
