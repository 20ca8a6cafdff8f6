import errno
import sqlite3

import pytest

from flakestorm.errors import Misuse
from flakestorm.reports.document import to_document
from flakestorm.store.schema import MIGRATIONS, connect, explained
from flakestorm.store.sqlite import Store
from report_samples import large, sample
from store_support import document, saved


def version(file) -> int:
    with sqlite3.connect(file) as db:
        found = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return found


def test_a_new_file_has_the_newest_version(tmp_path) -> None:
    connect(tmp_path / "s", write=True).close()
    assert version(tmp_path / "s") == len(MIGRATIONS)


def test_steps_that_are_missing_are_taken_once_and_in_order(tmp_path) -> None:
    taken = []

    def second(db: sqlite3.Connection) -> None:
        taken.append(db.execute("SELECT count(*) FROM reports").fetchone()[0])
        db.execute("ALTER TABLE reports ADD COLUMN note TEXT")

    connect(tmp_path / "s", write=True).close()
    for _ in range(2):
        connect(tmp_path / "s", write=True, migrations=(*MIGRATIONS, second)).close()
    assert taken == [0]
    assert version(tmp_path / "s") == len(MIGRATIONS) + 1


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path) -> None:
    def broken(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE half (x)")
        raise RuntimeError("no")

    connect(tmp_path / "s", write=True).close()
    with pytest.raises(RuntimeError):
        connect(tmp_path / "s", write=True, migrations=(*MIGRATIONS, broken))
    assert version(tmp_path / "s") == len(MIGRATIONS)
    db = connect(tmp_path / "s", write=False)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    db.close()


def test_a_newer_file_is_refused_and_an_older_one_is_not_read_wrongly(tmp_path) -> None:
    connect(tmp_path / "s", write=True, migrations=(*MIGRATIONS, lambda db: None)).close()
    with pytest.raises(Misuse, match="made by a newer flakestorm"):
        connect(tmp_path / "s", write=True)
    connect(tmp_path / "t", write=True).close()
    with pytest.raises(Misuse, match="made by an older flakestorm"):
        connect(tmp_path / "t", write=False, migrations=(*MIGRATIONS, lambda db: None))


def test_what_is_no_database_is_named(tmp_path) -> None:
    (tmp_path / "s").write_text("hello, I am no database at all" * 100)
    for write in (True, False):
        with pytest.raises(Misuse, match=r"the store .*s: it is damaged or no database"):
            connect(tmp_path / "s", write=write)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (sqlite3.OperationalError("database or disk is full"), "the disk is full; make room"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full; make room"),
        (PermissionError(errno.EACCES, "Permission denied", "/a/folder/named/full"), "Permission denied"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "make the folder writable"),
        (sqlite3.OperationalError("database is locked"), "another process has kept it locked"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (sqlite3.OperationalError("something new"), "something new"),
    ],
)
def test_every_trouble_is_told_in_words(tmp_path, error, words) -> None:
    assert words in str(explained(error, tmp_path / "s"))


def test_adding_costs_the_same_however_much_is_there(tmp_path) -> None:
    """Counted in steps of SQLite's machine, not in time."""
    report = large(300, 1)
    with Store(tmp_path / "s", write=True) as store:
        id_ = store.begin(document(report, runs=(), cells=()))
        costs = []
        for run in report.runs:
            steps = [0]
            store._db.connection.set_progress_handler(lambda steps=steps: steps.__setitem__(0, steps[0] + 1), 1)
            store.add(id_, [document(report, runs=(run,), cells=(report.cells[0],))])
            costs.append(steps[0])
        store._db.connection.set_progress_handler(None, 0)
    assert max(costs[-50:]) <= 1.2 * max(costs[10:60])


def test_nothing_saved_yet_says_so(tmp_path) -> None:
    with pytest.raises(Misuse, match="nothing was saved yet"):
        Store(tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misuse, match=r"the store .*file"):
        Store(tmp_path / "file" / "s", write=True)


def test_git_does_not_see_the_store(tmp_path) -> None:
    saved(tmp_path / "s", sample())
    assert (tmp_path / "s" / ".gitignore").read_text() == "*\n"


def test_a_full_disk_is_told_and_leaves_the_store_whole(tmp_path) -> None:
    ids = saved(tmp_path / "s", sample())
    with Store(tmp_path / "s", write=True) as store:
        pages = store._db.connection.execute("PRAGMA page_count").fetchone()[0]
        store._db.connection.execute(f"PRAGMA max_page_count = {pages}")  # it says the same of a full disk
        with pytest.raises(Misuse, match="the disk is full; make room"):
            store.save(to_document(large()))
    with Store(tmp_path / "s") as store:
        assert [entry.id for entry in store.entries()] == ids
