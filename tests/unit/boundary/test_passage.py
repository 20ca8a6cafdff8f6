from __future__ import annotations

import pytest

from flakestorm.boundary.passage import Passage
from flakestorm.boundary.session import Crossing
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow, chain, drive
from flakestorm.errors import Misuse


def answer(_: Call) -> Flow:
    return Reply(299)
    yield


def status(passage: Passage) -> int:
    return drive(passage.pipeline(Call("GET", "http://h/")), lambda call: Reply(200), lambda seconds: None).status


def test_calls_cross_on_the_bound_line_only() -> None:
    passage = Passage("T")
    assert status(passage) == 200
    with passage.bind(Crossing("r-1", chain(answer))):
        assert status(passage) == 299
    assert status(passage) == 200


def test_one_instance_serves_one_run_at_a_time() -> None:
    passage = Passage("T")
    with passage.bind(Crossing("r-1", chain())):
        with pytest.raises(Misuse, match="r-1"), passage.bind(Crossing("r-2", chain(answer))):
            pass
        assert status(passage) == 200


def test_a_run_that_fails_frees_the_passage() -> None:
    passage = Passage("T")
    with pytest.raises(ZeroDivisionError), passage.bind(Crossing("r-1", chain())):
        raise ZeroDivisionError
    with passage.bind(Crossing("r-2", chain(answer))):
        assert status(passage) == 299


def test_lanes_are_numbered_by_first_appearance_per_run() -> None:
    passage = Passage("T")
    with passage.bind(Crossing("r-1", chain())):
        assert [passage.lane(name) for name in ("b", "a", "b", None)] == ["1", "2", "1", "3"]
    with passage.bind(Crossing("r-2", chain())):
        assert passage.lane("a") == "1"
