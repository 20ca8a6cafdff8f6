from __future__ import annotations

import pytest

from flakestorm.tape.naming import is_secret_header, is_secret_name


@pytest.mark.parametrize(
    "name",
    [
        *("key", "API_KEY", "apiKey", "client.secret", "X-Token", "Password", "APIKey", "db-pwd", "accesstoken"),
        *("DB_PASSWORD_PROD", "SECRET_KEY_BASE", "password1", "userPassword", "aws_secret_access_key"),
        *("DB_PASS", "smtp_pass", "dbPass"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "keys", "keyboard", "tokens", "max_tokens", "primary_key", "idempotencyKey", "q", "monkey", "max_token"),
        *("token_type", "AWS_ACCESS_KEY_ID", "secretary", "passwordless"),
        *("pass", "first_pass", "bypass"),
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["Authorization", "cookie", "Set-Cookie", "X-Api-Key", "x-amz-signature", "X-Authorization"]
)
def test_headers_with_credentials(name: str) -> None:
    assert is_secret_header(name)
