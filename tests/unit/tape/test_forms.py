from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape.forms import basic, forms

SECRET = b"Hunter2-0123456789"
PART = b'--b\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n--b--\r\n'


def found(text: bytes) -> set[bytes]:
    return set(forms(text, text.lower()))


@pytest.mark.parametrize(
    "text",
    [
        PART % (b"password", b"", SECRET),
        PART % (b"api_key", b"\r\nContent-Type: text/plain", SECRET),
        PART.replace(b"\r\n", b"\n") % (b"client_secret", b"", SECRET),
        b"<r><Password>%b</Password></r>" % SECRET,
        b'<c:SessionToken xmlns:c="u"> %b</c:SessionToken>' % SECRET,
        b"> Authorization: Bearer %b\r\n" % SECRET,
        b"-H 'X-Api-Key: %b' https://a.test" % SECRET,
        b'{"log": "GET /\\nauthorization: Basic %b"}' % SECRET,
        b"Cookie: theme=dark; sid=%b; x=1" % SECRET,
        b"Set-Cookie: sid=%b; Path=/" % SECRET,
        b"db:\n  password: %b\n" % SECRET,
        b'api_key: "%b"' % SECRET,
        b"{password: '%b'}" % SECRET,
        b"export API_TOKEN='%b'\n" % SECRET,
        b'{"file": "A=1\\nOPENAI_API_KEY=\\"%b\\"\\n"}' % SECRET,
        b'client = Client(api_key="%b")' % SECRET,
        b"host=db user=ann password=%b dbname=x" % SECRET,
        b"run --api-key %b --verbose" % SECRET,
        b'["run", "--password", "%b"]' % SECRET,
        b'["run", "--token=%b"]' % SECRET,
        b'{"argv": "[\\"run\\", \\"--secret\\", \\"%b\\"]"}' % SECRET,
        b'[["authorization", "Bearer %b"]]' % SECRET,
        b'[["x-api-key", "%b"]]' % SECRET,
        b'{"name": "DB_PASSWORD", "value": "%b"}' % SECRET,
        b'{"Authorization": ["Bearer %b"]}' % SECRET,
        b'{"password": ["Other-123456", "%b"]}' % SECRET,
    ],
)
def test_a_secret_is_found_however_it_is_written(text: bytes) -> None:
    assert SECRET in found(text)


@pytest.mark.parametrize(
    "text",
    [
        b"token: required, password: optional-string, api_key: your_api_key.",
        b'{"required": ["api_key", "customer_name"], "primary": ["token", "address1"]}',
        b'{"key": ["source_url", "published_at"], "token": ["string", "null"]}',
        b'{"name": "api_key", "description": "your key of 32 characters"}',
        b'{"name": "sort_key", "value": "ascending-2026"}',
        b"run --max-tokens 123456789 --api-key --verbose --sort-key created_at",
        b"options: --password PASSWORD, --token <token>, --secret ********",
        b"published-at-2026</key><monkey>0123456789</monkey><token/>",
        b"password: ${DB_PASSWORD} or %DB_PASSWORD_2%",
        b'<Item key="item-0000001">',
        b"Cookie: theme=midnight",
        b"the idempotency key: order-0001234",
        PART % (b"file", b'; filename="a.txt"', b"0123456789"),
        b"",
    ],
)
def test_words_and_names_are_no_secrets(text: bytes) -> None:
    assert found(text) == set()


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_whatever_stands_there_is_read(before: bytes, after: bytes) -> None:
    for text in (before + b'token"' + after, before + b'form-data; name="' + after, before + b"--api-key " + after):
        assert all(value in text and len(value) >= 8 for value in forms(text, text.lower()))


def test_the_password_of_basic_credentials() -> None:
    assert basic(base64.b64encode(b"ann:Hunter2-:01").decode()) == b"Hunter2-:01"
    for other in ("?", "YQ", base64.b64encode(b"ann").decode(), base64.b64encode(b"ann:short").decode()):
        assert basic(other) is None
    assert basic(base64.b64encode("ann:größerer".encode("latin-1")).decode()) is None
