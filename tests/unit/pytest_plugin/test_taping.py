"""A test's tapes: recorded once, and played ever after."""

from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from flakestorm.errors import Misuse, TapeDamaged
from flakestorm.pytest_plugin.taping import HeldTape, place

AGAIN = "pytest --flakestorm-record 'a::b'"


def held(path, *, recording: bool = False) -> HeldTape:
    return HeldTape(path, AGAIN, recording=recording, tools=(("search", "*/search*"),))


def test_what_was_recorded_answers(up, tmp_path) -> None:
    path = tmp_path / "tapes" / "t.tape"
    for recording in (True, False):
        tape = held(path, recording=recording)
        with tape.held():
            assert httpx.get(f"{up.url}/search").json() == {"flights": 3}
        assert [call.site for call in tape.calls("search")] == ["tool/search#1"]
        tape.check()
    assert up.count("/search") == 1


def test_another_request_is_a_problem_and_a_missing_one_too(up, tmp_path) -> None:
    with held(tmp_path / "t.tape", recording=True).held():
        httpx.get(f"{up.url}/search")
    other = held(tmp_path / "t.tape")
    with other.held():
        assert httpx.get(f"{up.url}/search?to=Rome").status_code == 400
    assert "diverged" in other.problems()[0]
    with pytest.raises(pytest.fail.Exception, match=r"record it again: pytest --flakestorm-record"):
        other.check()
    silent = held(tmp_path / "t.tape")
    with silent.held():
        pass
    assert silent.problems() == []
    with pytest.raises(pytest.fail.Exception, match=r"tool/search#1 was not asked for again"):
        silent.check()


def test_without_a_tape_nothing_goes_out(up, tmp_path) -> None:
    tape = held(tmp_path / "t.tape")
    with pytest.raises(pytest.fail.Exception, match=r"there is no tape at .* record it: pytest"), tape.held():
        httpx.get(f"{up.url}/search")
    with pytest.raises(Misuse, match="there is no tape at"):
        tape.stand()
    assert up.count() == 0


def test_a_damaged_tape_says_how_to_record_it_again(tmp_path) -> None:
    (tmp_path / "t.1.tape").write_text("{}\n")
    with pytest.raises(TapeDamaged, match="record it again"):
        held(tmp_path / "t.tape").stand()


def test_each_run_of_the_agent_has_a_tape_of_its_own(tmp_path) -> None:
    tape = held(tmp_path / "t.tape", recording=True)
    assert [tape.stand().path for _ in range(2)] == [tmp_path / "t.1.tape", tmp_path / "t.2.tape"]
    assert not tape.exchanges


def test_a_tape_lies_beside_the_test_and_is_its_alone(tmp_path) -> None:
    def item(name: str) -> Any:
        return SimpleNamespace(name=name, path=tmp_path / "test_a.py", listchain=list)

    folder = tmp_path / "tapes" / "test_a"
    assert place(item("test_x[1-b]"), 1, recording=True) == folder / "test_x-1-b.tape"
    assert place(item("test_x"), 2, recording=True) == folder / "test_x.t2.tape"
    names = ["test_x[a b]", "test_x[a/b]", "test_x[a-b]", "test_x[a.]", "test_x[a]"]
    names += [f"test_x[{'y' * n}]" for n in (200, 201)]
    places = {place(item(name), 1, recording=True) for name in names}
    assert len(places) == len(names)
    folder.mkdir(parents=True)
    (earlier := folder / "test_x-a-b.tape").touch()
    assert place(item("test_x[a b]"), 1, recording=False) == earlier
    assert place(item("test_x[a b]"), 1, recording=True) != earlier
