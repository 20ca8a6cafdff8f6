from dataclasses import dataclass

from flakestorm.tape.lanes import Lanes


@dataclass
class Placed:
    n: int
    lane: str
    t_ms: float
    end_ms: float


def row(*lanes: str, long: bool = False) -> list[Placed]:
    """Exchanges on these lanes, one after the other, or all under way at once."""
    return [Placed(n, lane, n * 10.0, n * 10.0 + (1000 if long else 5)) for n, lane in enumerate(lanes)]


def test_a_lane_stands_for_the_one_it_was_matched_with_first() -> None:
    a, b, *_ = entries = row("1", "2", "1", "2", long=True)
    lanes = Lanes(entries)
    assert not lanes.served("1", b)
    assert not lanes.served("2", a)
    assert (lanes.bound("1"), lanes.bound("2"), lanes.bound("3")) == ("2", "1", None)


def test_order_within_a_lane_counts() -> None:
    a, _, c, _ = entries = row("1", "2", "1", "2", long=True)
    lanes = Lanes(entries)
    assert not lanes.served("1", c)
    assert lanes.served("1", a)


def test_order_within_a_connection_that_a_pool_may_have_lent_does_not() -> None:
    a, _, c, _ = entries = row("1", "2", "1", "2", long=True)
    lanes = Lanes(entries, threads=False)
    assert not lanes.served("1", c)
    assert not lanes.served("1", a)
    first, second = entries = row("1", "1")
    lanes = Lanes(entries, threads=False)
    assert not lanes.served("1", second)
    assert lanes.served("1", first), "nothing was concurrent"


def test_order_within_a_lane_with_a_name_counts_beside_connections() -> None:
    a, _, c, _ = entries = row("1.job1", "1", "1.job1", "1", long=True)
    lanes = Lanes(entries, threads=False)
    assert not lanes.served("1.job1", c)
    assert lanes.served("1.job1", a)


def test_order_between_concurrent_lanes_does_not() -> None:
    a, b = entries = row("1", "2", long=True)
    lanes = Lanes(entries)
    assert not lanes.served("1", b)
    assert not lanes.served("2", a)


def test_where_nothing_was_concurrent_the_whole_order_counts() -> None:
    a, b = entries = row("1", "2")
    lanes = Lanes(entries)
    assert not lanes.served("1", b)
    assert lanes.served("2", a)


def test_a_replay_that_is_concurrent_has_no_whole_order() -> None:
    a, b = entries = row("1", "2")
    lanes = Lanes(entries)
    lanes.begin()
    lanes.begin()
    lanes.end()
    assert not lanes.served("1", b)
    assert not lanes.served("2", a)


def test_a_named_lane_stands_for_that_of_its_name() -> None:
    first, _, third = row("1", "1.job1", "1.job2", long=True)
    lanes = Lanes(row("1", "1.job1", "1.job2", long=True))
    assert (lanes.bound("1.job2"), lanes.bound("1.job3"), lanes.bound("1")) == ("1.job2", None, None)
    lanes.served("1.job1", third)  # it does what the other one did
    assert (lanes.bound("1.job1"), lanes.bound("1.job2")) == ("1.job2", None)
    lanes.served("7", first)
    assert lanes.bound("7.job1") == "1.job1", "who started it is another number now"


def test_a_tape_on_which_jobs_have_no_names_binds_as_ever() -> None:
    a, b = row("1", "2", long=True)
    lanes = Lanes([a, b])
    assert lanes.bound("1.job1") is None
    lanes.served("1.job1", b)
    assert lanes.bound("1.job1") == "2"


def test_jobs_that_only_happened_not_to_overlap_have_no_order() -> None:
    for one, two in (("1.job1", "1.job2"), ("1.job9", "1.job10"), ("1", "1.job1"), ("1.job1", "2.job1")):
        a, b = entries = row(one, two)
        lanes = Lanes(entries)
        assert not lanes.served(two, b)
        assert not lanes.served(one, a), (one, two)


def test_jobs_that_come_in_turn_have_one() -> None:
    for one, two in (("1.job1", "1.job2"), ("1.job9", "1.job10"), ("1.job1.task1", "1.job1.task2")):
        a, b = entries = row(one, two)
        lanes = Lanes(entries)
        assert not lanes.served(one, b)
        assert lanes.served(two, a), "what was asked first is asked last now"
