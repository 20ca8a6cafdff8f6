from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flakestorm.boundary.draws import Dial, Drawing
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.session import Crossing
from flakestorm.core.call import Call, Reply
from flakestorm.core.draws import Draws
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
        assert [passage.lane(name, "base") for name in ("b", "a", "b", None)] == ["1", "2", "1", "3"]
    with passage.bind(Crossing("r-2", chain())):
        assert passage.lane("a", "base") == "1"


def test_a_lane_that_the_shim_names_is_numbered_where_it_began_by_itself() -> None:
    passage = Passage("T")
    said = ["9-3.job2", "9-3", "9-1.task1.job1", "8-3", "9-3.deep77.thread1"]
    with passage.bind(Crossing("r-1", chain())):
        assert passage.lane("a", "base") == "1"
        lanes = [passage.lane("a", "base", each) for each in said]
        assert lanes == ["2.job2", "2", "3.task1.job1", "4", "2.deep77.thread1"]
        assert passage.lane("a", "base") == "1"
        assert passage.ways == {"base": 7}


@pytest.mark.parametrize(
    "said", ["", "1", "1-", "x-1", "1-1.", "1-1.other1", "1-1.job", "1-1.job1 ", "1-1.job1\n", "9-1" + ".job1" * 60]
)
def test_what_the_shim_would_not_say_is_a_connection(said: str) -> None:
    passage = Passage("T")
    with passage.bind(Crossing("r-1", chain())):
        assert [passage.lane(name, "base", said) for name in ("b", "a", "b")] == ["1", "2", "1"]


def test_a_tape_of_the_first_form_knows_connections_only() -> None:
    passage = Passage("T")
    with passage.bind(Crossing("r-1", chain(), draws=Drawing(Draws(1, 1, form=1)))):
        assert passage.lane("a", "base", "9-3.job2") == "1"


def test_each_run_is_told_to_the_shim() -> None:
    dial = Dial(None)
    passage = Passage("T", dial=dial)
    for turn in (1, 2):
        with passage.bind(Crossing("r", chain())):
            assert memoryview(Path(dial.variables["FLAKESTORM_LANES"]).read_bytes()).cast("q")[0] == turn
    dial.close()


def test_a_line_that_lasts_forgets_old_connections_and_never_mixes_their_numbers() -> None:
    passage = Passage("T")
    with passage.bind(Crossing("r-1", chain())):
        labels = [passage.lane(n, "base") for n in range(10_000)]
        assert labels == [str(n) for n in range(1, 10_001)]
        assert passage.lane(9_999, "base") == "10000"
        assert passage.lane(0, "shim") == "10001"


def test_calls_on_a_line_are_counted_by_the_way_they_came_in() -> None:
    passage = Passage("T")
    passage.lane("a", "base")  # of no run
    with passage.bind(Crossing("r-1", chain())):
        for way in ("base", "shim", "base"):
            passage.lane("a", way)
    assert passage.ways == {"base": 2, "shim": 1}


async def test_an_agent_that_goes_on_after_its_answer_is_remarked_in_the_next_run() -> None:
    passage, one, two, three = Passage("T"), *(Crossing(f"r-{n}", chain()) for n in (1, 2, 3))
    passage.enter("POST")  # while it starts up
    passage.leave("POST")
    with passage.bind(one):
        passage.enter("POST")
        passage.leave("POST")
    for method in ("POST", "POST", "GET"):
        passage.enter(method)
        passage.leave(method)
    for line in (two, three):
        with passage.bind(line):
            pass
    assert [len(line.remarks) for line in (one, two, three)] == [0, 1, 0]
    assert "after its answer in the run before (2 times)" in two.remarks[0]


async def test_it_has_settled_when_no_call_is_under_way() -> None:
    passage = Passage("T")
    assert await passage.settled(0)
    passage.enter("GET")  # it only listens
    assert await passage.settled(0)
    passage.enter("POST")
    assert not await passage.settled(0.001)
    waiting = asyncio.ensure_future(passage.settled(20))
    await asyncio.sleep(0)
    passage.leave("POST")
    assert await waiting


async def test_of_an_agent_that_is_gone_everything_is_waited_for() -> None:
    passage = Passage("T")
    passage.enter("TLS")
    waiting = asyncio.ensure_future(passage.settled(20, gone=True))
    await asyncio.sleep(0)
    assert not waiting.done()
    passage.leave("TLS")
    assert await waiting


def test_time_is_the_runs_while_bound_and_real_otherwise() -> None:
    passage, line = Passage("t"), Crossing("r-1", chain())
    assert not passage.clock.skips
    with passage.bind(line):
        assert passage.clock is line.clock
    assert not passage.clock.skips
