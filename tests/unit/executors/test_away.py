"""Runs that are made elsewhere: what is told, what comes back, and what is kept here."""

import pickle
from dataclasses import fields, replace
from pathlib import Path

from engine_support import FakeAgent, runner
from flakestorm.config.model import Invariant, RateLimit, Scenario
from flakestorm.core.conversation import Conversation
from flakestorm.engine.judged import Judged
from flakestorm.engine.pacing import Pacing, Refusal
from flakestorm.engine.plan import Trial, make_plan
from flakestorm.engine.runner import Runner
from flakestorm.executors.away import AwayRunner, Errand, Lost, Outcome, outcome_of

FOUND = Invariant(type="contains", id="found", value="found")
PLAN = make_plan("t", scenarios=[Scenario(name="calm")], invariants=[FOUND], prompts=["one", "two"], trials=2)


class Elsewhere:
    """A carrier whose runs are made in this process, after a journey as bytes."""

    def __init__(self, there: Runner) -> None:
        self.there, self.told = there, list[Errand]()

    async def carry(self, errand: Errand) -> Outcome:
        self.told.append(errand)
        errand = pickle.loads(pickle.dumps(errand))
        found = await self.there.one(errand.trial)
        return pickle.loads(pickle.dumps(outcome_of(found, crossed=True)))


class Nobody:
    async def carry(self, errand: Errand) -> Outcome:
        raise Lost("three workers were lost")


def away(folder: Path, carrier: object) -> AwayRunner:
    folder.mkdir()
    here = runner(folder, FakeAgent())
    known = {f.name: getattr(here, f.name) for f in fields(Runner) if f.init and not f.name.startswith("_")}
    return AwayRunner(**known, carrier=carrier)


async def test_a_run_made_elsewhere_is_the_run_with_its_tape_here(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    carrier = Elsewhere(runner(tmp_path / "there", FakeAgent()))
    here = away(tmp_path / "here", carrier)
    found: list[Judged] = []
    await here.carry_out(PLAN.trials, found.append)
    assert [judged.trial for judged in found] == list(PLAN.trials)
    assert all(judged.trial is trial for judged, trial in zip(found, PLAN.trials, strict=True))
    assert [verdict.outcome for judged in found for _, verdict in judged.verdicts] == ["pass"] * 4
    assert all(invariant is FOUND for judged in found for invariant, _ in judged.verdicts)
    assert [Path(judged.run.tape).parent.name for judged in found] == ["here"] * 4
    assert all(Path(judged.run.tape).read_bytes() for judged in found)
    assert list((tmp_path / "there").iterdir()) == []


async def test_what_earlier_runs_have_shown_is_told(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    carrier = Elsewhere(runner(tmp_path / "there", FakeAgent()))
    here = away(tmp_path / "here", carrier)
    here.baselines = {0: "found 3"}
    await here.carry_out(PLAN.trials[:1], lambda _: None)
    await here.carry_out(PLAN.trials[2:3], lambda _: None)
    assert [(errand.baseline, errand.crossed) for errand in carrier.told] == [("found 3", False), (None, True)]


async def test_a_run_that_cannot_be_made_is_inconclusive(tmp_path: Path) -> None:
    found: list[Judged] = []
    await away(tmp_path / "here", Nobody()).carry_out(PLAN.trials[:1], found.append)
    ((_, verdict),) = found[0].verdicts
    assert verdict.outcome == "inconclusive"
    assert found[0].run.error == "unreachable: three workers were lost"
    assert found[0].run.tape == ""


def test_an_errand_keeps_what_a_pickle_might_lose() -> None:
    text = Conversation(["one", "two"])
    trial = Trial("r-1", Scenario(name="calm"), 0, text, 1, (FOUND,))
    errand = pickle.loads(pickle.dumps(Errand(trial)))
    assert errand == Errand(trial)
    assert errand.trial.text.turns == ("one", "two")


async def test_refusals_are_heard_of_when_a_run_has_ended(tmp_path: Path) -> None:
    class Refused(Elsewhere):
        async def carry(self, errand: Errand) -> Outcome:
            found = await super().carry(errand)
            return replace(found, run=replace(found.run, calls={"llm": 3}, refusals=(Refusal("llm/gpt#1", 429, 2500),)))

    (tmp_path / "there").mkdir()
    here = away(tmp_path / "here", Refused(runner(tmp_path / "there", FakeAgent())))
    here.pacing = Pacing(lambda: 0.0, RateLimit(calls_per_minute=60))
    await here.carry_out(PLAN.trials[:1], lambda _: None)
    assert here.pacing.paced.refusals == 1
    assert here.pacing.wait_s(0, 10) == 3  # three calls, at one a second
