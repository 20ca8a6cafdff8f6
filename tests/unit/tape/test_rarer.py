from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape.rarer import RARER, in_base64, is_hint, rarer
from flakestorm.tape.redact import Redactor, secrets_of

SECRET = b"Hunter2-0123456789"


def found(text: bytes) -> set[bytes]:
    return set(rarer(text, text.lower()))


@pytest.mark.parametrize(
    "text",
    [
        b"NPM_AUTH=%b\n" % SECRET,
        b"export REGISTRY_CREDENTIALS='%b'\n" % SECRET,
        b'{"gitlab_pat": "%b"}' % SECRET,
        b'{"env": "{\\"GITLAB_PAT\\": \\"%b\\"}"}' % SECRET,
        b"registry_auth: Basic %b\n" % SECRET,
        b"//registry.test/:_auth=%b\n" % SECRET,
        b"curl -u ann:%b https://a.test" % SECRET,
        b"curl -s --user 'ann:%b' https://a.test" % SECRET,
        b"curl --user=ann:%b https://a.test" % SECRET,
        b"curl https://a.test \\\n  -uann:%b" % SECRET,
        b'{"command": "curl -u \\"ann:%b\\" https://a.test"}' % SECRET,
        b'["/usr/bin/curl", "-u", "ann:%b"]' % SECRET,
        b"curl -u %b: https://a.test" % SECRET,
        b'{"p\\u0061ssword": "%b"}' % SECRET,
        b'{"\\u0061pi_key": "%b"}' % SECRET,
        b'{"arguments": "{\\"api\\\\u005fkey\\": \\"%b\\"}"}' % SECRET,
        b'{"tokens": {"ann": "other", "bob": "%b"}}' % SECRET,
        b'{"api_keys":{"openai":"%b"}}' % SECRET,
        b"tokens: {ann: '%b'}" % SECRET,
        b'{"secrets": {"db": "%b"}}' % SECRET,
        b'{"passwords": ["%b"]}' % SECRET,
        b'{"access_tokens": ["%b"]}' % SECRET,
        b'{"in": "{\\"credentials\\": {\\"pw\\": \\"%b\\"}}"}' % SECRET,
    ],
)
def test_a_secret_is_found_and_taken_out(text: bytes) -> None:
    assert SECRET in found(text)
    assert SECRET not in Redactor("0" * 32, known=()).body(text)


@pytest.mark.parametrize(
    "text",
    [
        b"GOOGLE_APPLICATION_CREDENTIALS=/home/ann/key-0123.json USE_AUTH=disabled SSH_AUTH_SOCK=/tmp/a1b2c3d4",
        b"basic_auth=make_auth2(user), http_auth=True, fetch(url, with_credentials='include')",
        b'{"proxy_auth": "https://a.test/v1/auth2", "file_path": "a1b2c3d4e5", "url_pat": "users/0123456/x"}',
        b'{"max_tokens": {"type": "integer0123456789"}, "tokens": 12345678901234567890}, {"tokens": {"in": 5}}',
        b'{"logprobs": {"tokens": ["The", " cat", "0123456789"]}}',
        b'{"tokens": {"$ref": "#/$defs/Tokens0123456789", "created_at": "2026-01-02T03:04:05"}}',
        b'{"tokens": {"id": "tok-0123456789abc"}}',
        b'{"keys": {"primary": "column-0123456789-of-the-table"}}',
        b'{"secrets": {"db": "projects/123/secrets/db", "ca": "/run/secrets/ca-2026.pem", "x": "${DB_PASSWORD}"}}',
        b"curl -u user:password, curl -u $USER:$TOKEN, curl --user you:YOUR_API_KEY, docker run -u 1000:1000",
        b'{"na\\u006de": "Hunter2-0123456789", "caf\\u00e9 \\u2019": "0123456789"}',
        b"",
    ],
)
def test_words_paths_and_counts_stay(text: bytes) -> None:
    assert found(text) == set()


def test_variables_that_may_hold_a_secret() -> None:
    environ = {
        "NPM_AUTH": "YW5uOkh1bnRlcjI=",
        "REGISTRY_CREDENTIALS": "ann:Hunter2-01",
        "GITLAB_PAT": "Hunter2-0123456789",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/ann/key.json",
        "PASSWORD_AUTH": "enabled-always",
        "PROXY_AUTH": "https://login.test/v2",
        "SSH_AUTH_SOCK": "/tmp/ssh-0123/agent.1",
        "MY_PATH": "Hunter2-path",
    }
    assert secrets_of(environ) == ["YW5uOkh1bnRlcjI=", "ann:Hunter2-01", "Hunter2-0123456789"]
    assert not is_hint("auth")


def test_a_header_that_ends_in_auth_holds_credentials() -> None:
    clean = Redactor("0" * 32, known=()).headers((("X-Registry-Auth", SECRET.decode()),))
    assert SECRET.decode() not in clean[0][1]


def test_a_body_in_base64_that_holds_a_secret_goes_as_a_whole() -> None:
    redactor = Redactor("0" * 32, known=())
    whole = base64.b64encode(json.dumps({"api_key": SECRET.decode()}).encode())
    clean = redactor.body(whole)
    assert clean == redactor.placeholder(whole)
    innocent = base64.b64encode(b'{"city": "Oslo", "nights": 3, "rooms": 1}')
    assert redactor.body(innocent) is innocent
    assert in_base64(b"eyJ not base64 at all") is None


@given(st.binary(max_size=300), st.binary(max_size=300), st.sampled_from(RARER))
def test_whatever_stands_there_is_read(before: bytes, after: bytes, needle: bytes) -> None:
    text = before + needle + after
    assert all(len(value) >= 8 or b":" in text for value in rarer(text, text.lower()))
    redactor = Redactor("0" * 32, known=())
    clean = redactor.body(text)
    assert redactor.body(clean) == clean
