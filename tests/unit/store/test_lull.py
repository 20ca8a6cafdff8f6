import sys
import threading

import pytest

from flakestorm.engine.events import Finished, RunFinished, RunStarted
from flakestorm.store import lull as module
from flakestorm.store.lull import QUIET_S, Lull
from report_samples import sample


class Clock:
    """Time passes only where somebody waits; `then` happens meanwhile."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.then: list = []

    def monotonic(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        if self.then:
            self.then.pop(0)()
        return False


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def waiting(clock: Clock) -> Lull:
    lull = Lull()
    lull._over.wait = clock.wait  # type: ignore[method-assign]
    return lull


def test_a_step_waits_until_no_run_has_begun_or_ended_for_a_while(clock) -> None:
    lull = waiting(clock)
    started, finished = RunStarted("r-0001", "calm", 0), RunFinished(sample().runs[0], ())
    clock.then = [lambda: None, lambda: lull(started), lambda: lull(finished)]
    with lull.step():
        assert clock.now_s == pytest.approx(100 + 4 * QUIET_S)
    with lull.step():
        assert clock.now_s == pytest.approx(100 + 4 * QUIET_S), "it is quiet still"


def test_a_step_waits_no_longer_than_that_though_it_is_never_quiet(clock) -> None:
    lull = waiting(clock)
    clock.then = [lambda: lull(RunStarted("r-0001", "calm", 0))] * 1000
    before = sys.getswitchinterval()
    with lull.step():
        assert 100 + module.MOST_S <= clock.now_s < 100 + module.MOST_S + 2 * QUIET_S
        assert sys.getswitchinterval() == before, "both sides have work to do all the time"


def test_nobody_waits_when_all_is_over() -> None:
    lull = Lull()
    lull(Finished(sample()))
    with lull.step(), lull.step():  # not even for one another
        pass


def test_threads_work_one_at_a_time_and_in_short_turns() -> None:
    before = sys.getswitchinterval()
    lull, at_work, most, turns = Lull(), [], [], []

    def work() -> None:
        with lull.step():
            at_work.append(1)
            most.append(len(at_work))
            turns.append(sys.getswitchinterval())
            at_work.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    lull(RunStarted("r-0001", "calm", 0))
    for thread in threads:
        thread.join(60)
    assert most == [1] * 4
    assert max(turns) < before
    assert sys.getswitchinterval() == before
