"""A delay ends where the client would have given up."""

from __future__ import annotations

import pytest

from flakestorm.boundary.seams.patience import Patience
from flakestorm.errors import CallFailed


class FakeTime:
    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds

    async def await_(self, seconds: float) -> None:
        self.now += seconds


def patience(time: FakeTime, read_s: float | None, total_s: float | None = None) -> Patience:
    return Patience(read_s, total_s=total_s, clock=time.clock, wait=time.wait, await_=time.await_)


def test_a_shorter_sleep_passes() -> None:
    time = FakeTime()
    patience(time, 5.0).sleep(4.0)
    assert time.now == 104.0


def test_a_longer_sleep_ends_at_the_time_out() -> None:
    time = FakeTime()
    with pytest.raises(CallFailed) as caught:
        patience(time, 5.0).sleep(30.0)
    assert (time.now, caught.value.how, caught.value.injected) == (105.0, "timeout", True)


async def test_the_same_for_asyncio() -> None:
    time = FakeTime()
    waiting = patience(time, 5.0)
    await waiting.asleep(1.0)
    with pytest.raises(CallFailed):
        await waiting.asleep(30.0)
    assert time.now == 105.0


def test_several_sleeps_before_one_byte_add_up() -> None:
    time = FakeTime()
    waiting = patience(time, 5.0)
    waiting.sleep(3.0)
    with pytest.raises(CallFailed):
        waiting.sleep(3.0)
    assert time.now == 105.0


def test_each_read_starts_anew() -> None:
    time = FakeTime()
    waiting = patience(time, 5.0)
    for _ in range(3):
        waiting.restart()
        waiting.sleep(4.0)
    assert time.now == 112.0


def test_a_total_limit_does_not_start_anew() -> None:
    time = FakeTime()
    waiting = patience(time, 5.0, total_s=6.0)
    waiting.sleep(4.0)
    waiting.restart()
    assert (waiting.total_left_s, waiting.spent) == (2.0, False)
    with pytest.raises(CallFailed):
        waiting.sleep(4.0)
    assert (time.now, waiting.total_left_s, waiting.spent) == (106.0, 0.0, True)


def test_without_a_limit_the_client_waits_for_ever() -> None:
    time = FakeTime()
    waiting = patience(time, None)
    waiting.restart()
    waiting.sleep(1e9)
    assert (time.now, waiting.total_left_s, waiting.spent) == (100.0 + 1e9, None, False)
