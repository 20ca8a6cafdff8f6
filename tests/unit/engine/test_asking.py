import random

from flakestorm.engine.asking import Asker
from flakestorm.engine.atoms import Outcome
from search_support import BROKEN, agent, atoms, drive


def test_what_is_known_is_not_run_again() -> None:
    asker = Asker()
    run = agent(["a#1", "b#1"], ["a#1=error"])
    (outcome,), runs = drive(asker.ask([atoms("a#1=error")]), run)
    assert outcome.shows(BROKEN)
    assert runs == 1
    (again,), runs = drive(asker.ask([atoms("a#1=error")]), run)
    assert (again, runs, asker.saved) == (outcome, 0, 1)


def test_a_fault_whose_call_is_not_made_adds_nothing() -> None:
    asker = Asker()
    drive(asker.ask([atoms("a#1=error")]), agent(["a#1"]))
    known = asker.predicted_for(atoms("a#1=error", "b#1=error"))
    assert known is not None
    assert known.fired == atoms("a#1=error")
    assert asker.predicted_for(atoms("b#1=error")) is None


def test_a_moody_agent_is_asked_until_it_is_clear() -> None:
    luck = random.Random(3)
    asker = Asker()
    bug = atoms("a#1=error")

    def run(ask) -> Outcome:
        base = agent(["a#1"], ["a#1=error"])(ask)
        fails = base.failures or ((BROKEN,) if luck.random() < 0.05 else ())
        return Outcome(base.asked, base.firings, base.sites, fails)

    rate, _ = drive(asker.measure(), run)
    assert 0 < rate < 0.3
    assert not asker.steady
    wrong = 0
    for _ in range(60):
        asker._known.clear()
        (bad, good), runs = drive(asker.ask([bug, atoms("a#1=timeout")]), run)
        wrong += (not bad.shows(BROKEN)) + good.shows(BROKEN)
        assert runs >= 3
    assert wrong <= 4


def test_a_failure_is_confirmed_by_fresh_runs_and_chance_is_not() -> None:
    broken, calm = agent(["a#1"], ["a#1=error"]), agent(["a#1"])
    asker = Asker()
    assert drive(asker.confirm(atoms("a#1=error"), BROKEN), broken) == (True, 2)
    sure, _ = drive(asker.confirm(atoms("a#1=error"), BROKEN), calm)
    assert not sure
    assert not asker.steady  # two runs of one schedule disagreed
    sure, runs = drive(asker.confirm(atoms("a#1=error"), BROKEN), broken)
    assert sure
    assert runs > 2
    sure, _ = drive(asker.confirm(atoms("a#1=error"), BROKEN), calm)
    assert not sure
