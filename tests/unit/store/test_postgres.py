"""What only a server has: its schema, its lock, content that is fetched, and errors of its own."""

from pathlib import Path

import psycopg
import pytest

from flakestorm.errors import Misuse
from flakestorm.reports.document import to_document
from flakestorm.store import postgres
from flakestorm.store.database import VARIABLE
from flakestorm.store.postgres import MIGRATIONS, Postgres
from flakestorm.store.sqlite import Store
from postgres_support import emptied
from report_samples import sample
from store_support import document, saved, with_tapes

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture
def address(postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(VARIABLE, postgres_server)
    return emptied(postgres_server)


def test_another_machine_reads_what_was_saved_with_its_tapes(tmp_path: Path, address: str) -> None:
    report = with_tapes(tmp_path / "runs")
    [id_] = saved(tmp_path / "here", report)
    with Store(tmp_path / "there") as store:
        assert not (tmp_path / "there").exists()
        found = store.document(id_)
    assert [Path(run["tape"]).read_text() for run in found["runs"]] == [f"tape of {run.id}" for run in report.runs]
    assert all(str(tmp_path / "there" / "content") in run["tape"] for run in found["runs"])


def test_nothing_saved_yet_says_so_and_makes_nothing(tmp_path: Path, address: str) -> None:
    with pytest.raises(Misuse, match="nothing was saved yet"):
        Store(tmp_path / "s")
    with psycopg.connect(address) as db:
        assert db.execute("SELECT to_regnamespace('flakestorm')").fetchone() == (None,)


def test_there_is_something_to_read_once_something_was_saved(tmp_path: Path, address: str) -> None:
    assert not Store.lies_in(tmp_path)
    saved(tmp_path / "s", sample())
    assert Store.lies_in(tmp_path)


def test_steps_that_are_missing_are_taken_once_and_in_order(tmp_path: Path, address: str) -> None:
    second = ("ALTER TABLE reports ADD COLUMN note TEXT",)
    saved(tmp_path / "s", sample())
    with pytest.raises(Misuse, match="made by an older flakestorm"):
        Postgres(address, tmp_path, write=False, migrations=(*MIGRATIONS, second))
    for _ in range(2):
        Postgres(address, tmp_path, write=True, migrations=(*MIGRATIONS, second)).close()
    with pytest.raises(Misuse, match="made by a newer flakestorm"):
        Store(tmp_path / "s")


def test_text_that_postgres_cannot_hold_is_kept_in_documents(tmp_path: Path, address: str) -> None:
    odd = document(config="a\0b", headline="c\0d")
    with Store(tmp_path / "s", write=True) as store:
        id_ = store.save(odd)
        assert store.document(id_)["headline"] == "c\0d"
        assert store.entries()[0].config == "a\ufffdb"


def test_a_writer_waits_for_another_and_says_so_when_that_takes_too_long(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOCK_MS", 50)
    with Store(tmp_path / "s", write=True) as one, Store(tmp_path / "s", write=True) as other:
        with one._db.writing(), pytest.raises(Misuse, match="another process has kept it locked"):
            other.save(to_document(sample()))
        assert other.save(to_document(sample()))


def test_a_writer_that_breaks_off_leaves_nothing(tmp_path: Path, address: str) -> None:
    with Store(tmp_path / "s", write=True) as store:
        with pytest.raises(KeyError):
            store.save({key: value for key, value in document().items() if key != "cells"})
        assert store.entries() == []


def test_a_server_that_is_not_there_is_named_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://me:hidden@127.0.0.1:1/reports")
    with pytest.raises(Misuse, match=r"the store postgresql://me@127\.0\.0\.1:1/reports: ") as caught:
        Store(tmp_path / "s", write=True)
    assert "hidden" not in str(caught.value)
