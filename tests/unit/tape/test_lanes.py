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
