"""Tests of the store run with SQLite and with a Postgres server."""

from collections.abc import Iterator

import pytest

from flakestorm.store.database import VARIABLE
from postgres_support import MISSING, emptied, postgres, programs


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    if programs() is None:
        pytest.skip(MISSING)
    with postgres() as address:
        yield address


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which one the test runs with."""
    if request.param == "sqlite":
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, emptied(request.getfixturevalue("postgres_server")))
    return str(request.param)
