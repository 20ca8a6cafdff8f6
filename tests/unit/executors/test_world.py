"""Time and places on this machine."""

import threading
from datetime import datetime
from pathlib import Path

import pytest

from flakestorm.errors import ConfigError, Misuse
from flakestorm.executors.world import LocalWorld


def test_tapes_stay_where_they_were_meant_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    world = LocalWorld(Path("reports/tapes"))
    assert (tmp_path / "reports" / "tapes").is_dir()
    monkeypatch.chdir("/")
    assert world.tape_path("r-0001") == tmp_path / "reports" / "tapes" / "r-0001.tape"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Misuse, match=r"tapes cannot be written to .*file"):
        LocalWorld(tmp_path / "file" / "tapes")


def test_clocks(tmp_path: Path) -> None:
    world = LocalWorld(tmp_path)
    assert world.monotonic() <= world.monotonic()
    assert datetime.fromisoformat(world.now()).utcoffset() is not None
    assert world.now().endswith("Z")


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    world = LocalWorld(tmp_path)
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"), world.limited(0.05):
        threading.Event().wait(20)
    with world.limited(20):
        pass


def test_another_thread_has_no_limit(tmp_path: Path) -> None:
    def work() -> None:
        with LocalWorld(tmp_path).limited(0.0):
            done.set()

    done = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert done.is_set()


@pytest.mark.parametrize("there", ["", "reports", "reports/now/tapes"])
def test_after_an_error_no_empty_folder_is_left_that_was_not_there(tmp_path: Path, there: str) -> None:
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    world = LocalWorld(tmp_path / "reports" / "now" / "tapes")
    LocalWorld(tmp_path / "reports" / "now" / "tapes" / "base")
    with pytest.raises(ConfigError), world.reserved():
        raise ConfigError("no such agent")
    left = {str(folder.relative_to(tmp_path)) for folder in tmp_path.rglob("*")}
    kept = {"": set(), "reports": {"reports"}}
    assert left == kept.get(there, {"reports", "reports/now", "reports/now/tapes", "reports/now/tapes/base"})


def test_what_holds_something_stays(tmp_path: Path) -> None:
    world = LocalWorld(tmp_path / "reports" / "now" / "tapes")
    beside = LocalWorld(tmp_path / "reports" / "later" / "tapes")  # of another command, which has just begun
    with pytest.raises(ConfigError), world.reserved():
        raise ConfigError("no such agent")
    assert beside.tape_path("r-0001").parent.is_dir()
    assert not world.tape_path("r-0001").parent.parent.exists()
    beside.tape_path("r-0001").touch()
    with pytest.raises(ConfigError), beside.reserved():
        raise ConfigError("no such agent")
    assert beside.tape_path("r-0001").exists()


def test_without_an_error_they_stay(tmp_path: Path) -> None:
    world = LocalWorld(tmp_path / "tapes")
    with world.reserved():
        pass
    assert (tmp_path / "tapes").is_dir()
