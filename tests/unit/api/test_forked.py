from pathlib import Path

import pytest

from flakestorm.api.forked import Change, fork_of
from flakestorm.core.call import Call, Reply
from flakestorm.core.site import Site
from flakestorm.errors import Misuse, TapeDamaged
from flakestorm.tape.reader import Tape
from tape_support import ASKED, Run


def recorded(path: Path) -> Path:
    run = Run(path)
    run.ask(
        Call("POST", "https://x.test/", body=ASKED, kind="llm", name="m", site=Site("llm", "m", 1)), lambda _: Reply()
    )
    run.recorder.close(output="done")
    return path


def test_a_change_says_what_it_is() -> None:
    said = [str(change) for change in (Change(), Change(b""), Change(None, "empty"), Change(None, None, "gpt-4o"))]
    assert said == ["resample", "another reply", "fault empty", "model gpt-4o"]
    with pytest.raises(Misuse, match="one change"):
        Change(b"", "empty")


def test_a_tape_is_read_to_be_forked_any_number_of_times(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.tape")
    fork = fork_of(Tape.open(path))
    assert fork.sites == (Site("llm", "m", 1),)
    assert fork.player(fork.sites[0]) is not fork.player(fork.sites[0])


def test_a_damaged_tape_is_not_forked(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.tape")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(TapeDamaged, match="cut short"):
        fork_of(Tape.open(path))
