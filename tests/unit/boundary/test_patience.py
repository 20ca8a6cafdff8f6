"""A delay ends where the client would have given up, and most of it need not really pass."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from flakestorm.boundary.patience import Patience, rest
from flakestorm.boundary.session import Crossing
from flakestorm.core.clock import HOLD_S, Clock, shortened
from flakestorm.core.pipeline import chain
from flakestorm.errors import CallFailed


class FakeTime:
    """Real time, which passes only where somebody waits, and a run's clock over it."""

    def __init__(self, *, skips: bool = True) -> None:
        self.real = 100.0
        self.clock = Clock(lambda: self.real, skips=skips)

    @property
    def now(self) -> float:
        return round(self.clock.now(), 6)

    @property
    def waited(self) -> float:
        return self.real - 100.0

    def wait(self, seconds: float) -> None:
        self.real += seconds

    async def await_(self, seconds: float) -> None:
        self.real += seconds


def patience(time: FakeTime, read_s: float | None, total_s: float | None = None, *, known: bool = True) -> Patience:
    return Patience(time.clock, read_s, total_s=total_s, known=known, wait=time.wait, await_=time.await_)


def test_a_shorter_sleep_passes() -> None:
    time = FakeTime()
    patience(time, 5.0).sleep(4.0)
    assert time.now == 104.0
    assert time.waited == pytest.approx(shortened(4.0), abs=1e-6)


def test_in_real_time_it_really_passes() -> None:
    time = FakeTime(skips=False)
    patience(time, 5.0).sleep(4.0)
    assert time.waited == 4.0


def test_where_patience_is_not_known_a_delay_is_held_so_that_the_client_may_leave() -> None:
    time = FakeTime()
    patience(time, None, known=False).sleep(8.0)
    assert (time.now, time.waited) == (108.0, 8.0)
    patience(time, None, known=False).sleep(60.0)
    assert (time.now, time.waited) == (168.0, 8.0 + HOLD_S)


def test_many_short_delays_are_shortened_as_one_long_one() -> None:
    time = FakeTime()
    waiting = patience(time, 5.0)
    for _ in range(1000):
        waiting.restart()
        waiting.sleep(0.05)
    assert time.now == 150.0
    assert time.waited == pytest.approx(shortened(50.0), abs=1e-3)


async def test_a_client_that_cannot_be_told_runs_into_its_own_time_out() -> None:
    time = FakeTime()
    waiting = patience(time, 5.0)
    waiting.fall_silent()
    await waiting.asleep(1.0)
    assert time.waited < 1.0
    with pytest.raises(CallFailed):
        await waiting.asleep(30.0)
    assert time.now >= 105.0
    assert time.waited > 4.0
    endless = patience(time, 3600.0)
    endless.fall_silent()
    before = time.waited
    with pytest.raises(CallFailed):
        await endless.asleep(4000.0)
    assert time.waited - before == pytest.approx(shortened(3600.0), abs=1e-3)


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


async def test_rest_is_no_timer_of_the_run() -> None:
    """The agent's `asyncio.timeout` is brought forward past the delay; what the delay itself waits for is not."""
    crossing = Crossing("r-1", chain())
    with crossing.active():
        began = crossing.clock.now()
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                await Patience(crossing.clock, known=False).asleep(60.0)
        assert 30 <= crossing.clock.now() - began < 32
    await rest(0.0)
