"""Which database it is, and what is said where it cannot be used."""

import sys
from pathlib import Path

import pytest

from flakestorm.errors import MissingExtra, Misuse
from flakestorm.store.database import FILE, VARIABLE, lies_in, open_database, server


def test_without_a_server_it_lies_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert (server(), lies_in(tmp_path)) == ("", False)
    open_database(tmp_path, write=True).close()
    assert lies_in(tmp_path)
    assert (tmp_path / FILE).is_file()


def test_a_server_that_cannot_be_asked_is_left_to_whoever_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://tester@127.0.0.1:1/reports")
    assert (server(), lies_in(tmp_path)) == ("postgresql://tester@127.0.0.1:1/reports", True)


@pytest.mark.parametrize("address", ["mysql://here/reports", "/tmp/store", "localhost"])
def test_an_address_of_something_else_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, address)
    with pytest.raises(Misuse, match="must be the address of a Postgres database"):
        server()


def test_a_missing_client_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://tester@/reports")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "flakestorm.store.postgres", raising=False)
    with pytest.raises(MissingExtra, match=r"flakestorm\[postgres\]"):
        open_database(tmp_path, write=True)
