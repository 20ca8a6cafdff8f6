import asyncio
from dataclasses import replace

from engine_support import FakeAgent, runner, says, scenario
from flakestorm.core.call import Reply
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.plan import make_plan
from flakestorm.tape.reader import Tape

PLAN = make_plan("x", scenarios=[scenario("calm")], invariants=[says("found")], prompts=["a"])


def made(folder, hooks: Hooks):
    found = []
    asyncio.run(replace(runner(folder, FakeAgent()), hooks=hooks).carry_out(PLAN.trials, found.append))
    return found[0]


def test_nothing_takes_part_by_default(tmp_path) -> None:
    judged = made(tmp_path, Hooks())
    assert [verdict.outcome for _, verdict in judged.verdicts] == ["pass"]
    assert judged.sites == ()


def test_a_stage_within_answers_in_the_worlds_place_and_is_told_what_was_recorded(tmp_path) -> None:
    counts = []

    def within(trial, inside):
        def stage(call):
            counts.append((trial.run, len(inside.noted())))
            return Reply(503, body=b"not today")
            yield call

        return [stage]

    judged = made(tmp_path, Hooks(within=within, facts={"why": "a test"}, sites=True))
    assert counts == [("r-0001", 1)]  # its own call, which it may see
    (exchange,) = (tape := Tape.open(tmp_path / "r-0001.tape"))
    assert exchange.reply.status == 503
    assert tape.header["why"] == "a test"
    assert [str(site) for site in judged.sites] == ["tool/search#1"]


def test_what_proves_nothing_is_inconclusive_and_what_was_judged_can_be_reviewed(tmp_path) -> None:
    judged = made(tmp_path, Hooks(doubts=lambda trial: f"{trial.run} was not answered"))
    assert judged.run.error == "unreachable: r-0001 was not answered"
    assert [verdict.outcome for _, verdict in judged.verdicts] == ["inconclusive"]
    assert made(tmp_path, Hooks(reviewed=lambda judged: replace(judged, verdicts=()))).verdicts == ()


def test_a_run_is_judged_as_it_is_viewed(tmp_path) -> None:
    judged = made(tmp_path, Hooks(viewed=lambda trial, view: replace(view, output="nothing")))
    assert [verdict.outcome for _, verdict in judged.verdicts] == ["fail"]
