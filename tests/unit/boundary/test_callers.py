from __future__ import annotations

import pytest

from flakestorm.boundary.callers import foreign

LOCAL = [
    "127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]", "[::1]:80", "10.0.0.3:80", "app.localhost",
    "host.docker.internal:9", "printer.local", "gateway", "localhost.", "",
]  # fmt: skip
FOREIGN = [
    "evil.example",
    "127.0.0.1.evil.example:80",
    "localhost.evil.example",
    "evil.internal.example",
    "x@evil.example",
    "1.2.3",
    "é",
    "[::1].evil.example",
    "[evil]",
]


@pytest.mark.parametrize("host", LOCAL)
def test_names_that_public_dns_cannot_give_are_local(host: str) -> None:
    assert foreign(host, None) == ""
    assert not host or foreign("localhost", f"http://{host}") == ""


@pytest.mark.parametrize("host", FOREIGN)
def test_any_other_name_is_foreign_and_said(host: str) -> None:
    assert repr(host) in foreign(host, None)
    assert host in foreign("localhost", f"https://{host}")


def test_a_page_without_an_address_is_foreign() -> None:
    assert "null" in foreign("localhost", "null")
    assert foreign("localhost", "")
