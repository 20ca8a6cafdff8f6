"""A run's time: skipped from event to event, and never past one."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.clock import FACTOR, LONGEST_S, UNHURRIED_S, Clock, shortened


class Real:
    """Real time; `play` makes the pauses that delays ask for, the soonest first."""

    def __init__(self, *, skips: bool = True) -> None:
        self.now = 50.0
        self.clock = Clock(lambda: self.now, skips=skips)
        self.began = self.clock.now()

    def since(self) -> float:
        return round(self.clock.now() - self.began, 6)

    def play(self, *delays: Generator[float, None, None]) -> list[float]:
        """Let the delays pass side by side; the run's time at which each of them ended."""
        ends = [0.0] * len(delays)
        wakes = dict.fromkeys(range(len(delays)), self.now)
        while wakes:
            at = min(wakes, key=lambda at: (wakes[at], at))
            self.now = max(self.now, wakes[at])
            pause = next(delays[at], None)
            if pause is None:
                del wakes[at]
                ends[at] = self.since()
            else:
                wakes[at] = self.now + pause
        return ends


class Alarms:
    """Timers of an agent: due at these seconds from the beginning; `fired` are those that were due so far."""

    def __init__(self, real: Real, *at: float) -> None:
        self.real, self.at, self.ahead = real, list(at), 0.0

    def due_s(self) -> float | None:
        now = self.real.now - 50.0 + self.ahead
        return min((at - now for at in self.at if at > now), default=None)

    def passed(self, seconds: float) -> None:
        self.ahead += seconds


def delay(real: Real, seconds: float, **more: object) -> Generator[float, None, None]:
    return real.clock.passing(seconds, shortened(seconds), **more)  # type: ignore[arg-type]


def test_a_delay_passes_in_the_runs_time_and_hardly_in_real_time() -> None:
    real = Real()
    assert real.play(delay(real, 20.0)) == [20.0]
    assert real.now - 50.0 == pytest.approx(0.299)
    assert real.clock.skipped_s == pytest.approx(19.701)


def test_in_real_time_nothing_is_skipped() -> None:
    real = Real(skips=False)
    assert list(delay(real, 20.0)) == [20.0]
    assert real.clock.skipped_s == 0.0


def test_short_delays_take_their_time() -> None:
    assert shortened(UNHURRIED_S) == UNHURRIED_S
    assert shortened(UNHURRIED_S + FACTOR / 2) == pytest.approx(UNHURRIED_S + 0.5)
    assert shortened(1e9) == LONGEST_S


def test_delays_side_by_side_take_as_long_as_the_longest() -> None:
    real = Real()
    assert real.play(delay(real, 20.0), delay(real, 5.0), delay(real, 20.0)) == [20.0, 5.0, 20.0]


@given(st.lists(st.floats(0.001, 10_000), min_size=1, max_size=6))
def test_side_by_side_every_delay_ends_when_it_should(seconds: list[float]) -> None:
    real = Real()
    ends = real.play(*(delay(real, each) for each in seconds))
    assert ends == pytest.approx(seconds, abs=0.05 + 0.02 * len(seconds))


def test_no_time_is_skipped_while_a_call_is_under_way() -> None:
    real = Real()
    real.clock.begin()
    passing = delay(real, 3.0)
    real.now += next(passing)
    for _ in range(10):
        real.now += next(passing)
    assert real.clock.skipped_s == 0.0
    real.clock.end()
    real.play(passing)
    assert real.since() == 3.0
    assert real.clock.skipped_s > 2.0


def test_a_call_under_way_for_longer_than_the_delay_lets_it_end() -> None:
    real = Real()
    real.clock.begin()
    assert real.play(delay(real, 3.0)) == [pytest.approx(3.0, abs=0.01)]
    assert real.clock.skipped_s == 0.0


def test_timers_are_not_jumped_over() -> None:
    real = Real()
    alarms = Alarms(real, 5.0, 12.0)
    stops = []
    for pause in delay(real, 20.0, timers=alarms):
        real.now += pause
        stops.append(real.since())
    assert [round(stop) for stop in (*stops, real.since())] == [0, 5, 12, 20]


def test_an_agent_that_ticks_does_not_hold_time_up() -> None:
    real = Real()
    alarms = Alarms(real, *(n / 1000 for n in range(60_000)))
    pauses = 0
    for pause in delay(real, 60.0, timers=alarms):
        real.now += pause
        pauses += 1
    assert real.since() == pytest.approx(60.0)
    assert pauses < 120


def test_who_gives_up_is_not_waited_for() -> None:
    real = Real()
    left = delay(real, 5.0)
    real.now += next(left)
    left.close()
    assert real.play(delay(real, 20.0))[0] == pytest.approx(20.05, abs=0.1)
