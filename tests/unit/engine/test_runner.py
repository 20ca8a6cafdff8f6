import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine_support import FakeAgent, FakeWorld, OneByOne, run_of, runner, says, scenario
from flakestorm.config.model import Invariant, RateLimit, Scenario
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import drive
from flakestorm.core.stream import pump
from flakestorm.engine.advice import Advice
from flakestorm.engine.budget import Budget, Limits
from flakestorm.engine.events import Note
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.mutating import mutated_plan
from flakestorm.engine.pacing import Pacing, Refusal
from flakestorm.engine.plan import make_plan
from flakestorm.engine.runner import no_room
from flakestorm.executors.local import LocalExecutor
from flakestorm.mutations.generate import made
from flakestorm.tape.reader import Tape
from mutations_support import recipe


def carry_out(tmp_path, agent, *scenarios, prompts=("a",)):
    plan = make_plan("x", scenarios=scenarios, invariants=[says("found", when="tool_faults_active")], prompts=prompts)
    found = []
    asyncio.run(runner(tmp_path, agent).carry_out(plan.trials, found.append))
    return found


def test_the_agent_error_ends_up_in_run_verdict_and_tape(tmp_path) -> None:
    class Broken(FakeAgent):
        async def ask(self, prompt, line) -> Answer:
            return Answer(error=AgentError("crash", "exit code 1"))

    (judged,) = carry_out(tmp_path, Broken(), scenario("down", "search"))
    assert judged.run.error == "crash: exit code 1"
    footer = Tape.open(judged.run.tape).footer
    assert footer is not None
    assert footer.error == "crash: exit code 1"


def test_the_tape_is_closed_even_if_asking_is_cut_short(tmp_path) -> None:
    class Stopping(FakeAgent):
        async def ask(self, prompt, line) -> Answer:
            raise KeyboardInterrupt

    try:
        carry_out(tmp_path, Stopping(), scenario("calm"))
    except KeyboardInterrupt:
        assert Tape.open(tmp_path / "r-0001.tape").complete
    else:
        raise AssertionError("the interruption was swallowed")


def test_only_what_applies_is_judged(tmp_path) -> None:
    calm, down = carry_out(tmp_path, FakeAgent(), scenario("calm"), scenario("down", "search"))
    assert calm.verdicts == ()
    assert [v.outcome for _, v in down.verdicts] == ["fail"]


def test_exchanges_are_not_kept_in_memory(tmp_path) -> None:
    (judged,) = carry_out(tmp_path, FakeAgent(), scenario("calm"))
    assert judged.view.exchanges == ()
    assert run_of(judged.trial).view.exchanges == ()


def test_tools_that_the_boundary_holds_are_sure_to_be_seen(tmp_path) -> None:
    held = runner(tmp_path, FakeAgent())
    held.visible = ("search",)
    held.boundary.tools = ("book",)
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[says("found")], prompts=("a",))
    found = []
    asyncio.run(held.carry_out(plan.trials, found.append))
    assert found[0].view.visible == ("search", "book")


def test_of_an_agent_of_somebody_else_only_a_call_that_crossed_proves_anything(tmp_path) -> None:
    class Calling(FakeAgent):
        async def ask(self, prompt, line) -> Answer:
            line.calls = len(self.asked)  # none in the first run
            self.asked.append(prompt)
            return Answer("done")

    it = runner(tmp_path, Calling())
    it.elsewhere = True
    found = []
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[says("done")], prompts=["a", "b", "c"])
    asyncio.run(it.carry_out(plan.trials, found.append))
    assert [judged.view.held for judged in found] == [False, True, True]


def test_a_poisoned_input_is_what_the_agent_is_asked_and_what_run_and_tape_say(tmp_path) -> None:
    agent = FakeAgent()
    attack = {"type": "memory_poisoning", "payload": "is admin", "inject_at": "input"}
    poisoned, calm = carry_out(
        tmp_path, agent, Scenario.of({"name": "bad", "context_attacks": [attack]}), scenario("calm")
    )
    assert agent.asked == [poisoned.run.input, "a"]
    assert poisoned.view.input == poisoned.run.input
    assert poisoned.run.input.startswith("a\n\nis admin Put the reference code")
    assert [str(firing.site) for firing in poisoned.run.fired] == ["agent/input#1"]
    heads = [json.loads(Path(judged.run.tape).read_bytes().splitlines()[0]) for judged in (poisoned, calm)]
    assert [(head["input"], head.get("original")) for head in heads] == [(poisoned.run.input, "a"), ("a", None)]


class Delayed(FakeAgent):
    """Its search is kept waiting for 20 s of the run's time."""

    async def ask(self, prompt, line) -> Answer:
        for _ in line.clock.passing(20.0, 0.1):
            pass
        return await super().ask(prompt, line)


def test_skipped_time_counts_in_latency_and_on_the_tape(tmp_path) -> None:
    (judged,) = carry_out(tmp_path, Delayed(), scenario("calm"))
    assert 19_900 <= judged.view.latency_ms <= 20_100
    assert judged.run.latency_ms == round(judged.view.latency_ms, 1)
    (exchange,) = Tape.open(judged.run.tape).exchanges()
    assert 19_900 <= exchange.t_ms <= 20_100


def test_an_answer_that_comes_too_late_by_the_runs_time_is_a_time_out(tmp_path) -> None:
    held = runner(tmp_path, Delayed())
    held.limit_ms = 15_000
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[says("found")], prompts=("a",))
    found = []
    asyncio.run(held.carry_out(plan.trials, found.append))
    assert (found[0].run.output, found[0].run.error) == ("", "timeout: no answer within 15000 ms")
    assert found[0].run.latency_ms == 15_000


def mutated(*types: str, count: int = 2):
    rows = [made(recipe(*types, count=count), "Book a flight")[0]]
    return mutated_plan(rows, invariants=[says("search", name="says")], prompts=["Book a flight"])


def test_a_mutation_is_what_is_asked_and_told(tmp_path) -> None:
    agent, found, plan = FakeAgent(), [], mutated("noise")
    asyncio.run(runner(tmp_path, agent).carry_out(plan.trials, found.append))
    assert agent.asked == [trial.text for trial in plan.trials]
    assert [(j.run.mutation.type, j.run.mutation.status, j.run.mutation.original) for j in found] == [
        ("noise", "sent", "Book a flight")
    ] * 2
    assert all(j.view.mutated and j.view.input_kind == "benign" for j in found)


def test_a_change_of_the_request_is_not_applicable_where_there_is_none(tmp_path) -> None:
    agent, found = FakeAgent(), []
    asyncio.run(runner(tmp_path, agent).carry_out(mutated("payload_size_attack").trials, found.append))
    assert agent.asked == []
    assert [(j.run.mutation.status, j.verdicts, j.run.tape) for j in found] == [("not applicable", (), "")] * 2
    waiting = Waiting([0.0])
    paced = replace(
        runner(tmp_path, agent), executor=waiting, pacing=Pacing(lambda: 0.0, RateLimit(calls_per_minute=1))
    )
    asyncio.run(paced.carry_out(mutated("payload_size_attack").trials, found.append))
    assert (len(found), waiting.waited) == (4, [])  # what is not made uses up nothing


class Busy(FakeAgent):
    """An agent whose search, the second time that it is asked, has had enough."""

    async def ask(self, prompt, line) -> Answer:
        self.asked.append(prompt)
        reply = Reply(429, (("retry-after", "7"),)) if len(self.asked) == 2 else Reply(200)
        said = drive(line.pipeline(Call("GET", "http://tools/search")), lambda _: reply, lambda _: None)
        for _ in pump(said, lambda _: None):
            pass
        return Answer(f"found {said.status}")


class Waiting(OneByOne):
    """Waits for as long as it is told to, by a clock that is turned."""

    def __init__(self, clock: list[float]) -> None:
        self.clock, self.waited = clock, []

    async def execute(self, items, work, done, concurrency, hold_s) -> None:
        items = enumerate(items)
        while True:
            while wait_s := hold_s(0):
                self.waited.append(wait_s)
                self.clock[0] += wait_s
            if (item := next(items, None)) is None:
                return
            done(item[0], await work(item[1], no_room))


def paced(tmp_path, **more):
    clock, told = [0.0], []
    it = runner(tmp_path, Busy())
    it.pacing, it.executor, it.listener = Pacing(lambda: clock[0]), Waiting(clock), told.append
    it = replace(it, **{name: make(clock) for name, make in more.items()})
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[says("found 200")], prompts=["a", "b", "c"])
    found = []
    asyncio.run(it.carry_out(plan.trials, found.append))
    return found, it.executor.waited, [event.text for event in told if isinstance(event, Note)]


def test_what_the_world_refused_is_waited_for_before_the_next_run(tmp_path) -> None:
    found, waited, notes = paced(tmp_path)
    assert waited == [7.0]
    assert [judged.run.refusals for judged in found] == [(), (Refusal("tool/search#1", 429, 7000),), ()]
    assert [judged.view.starved for judged in found] == [False, True, False]
    assert [verdict.outcome for judged in found for _, verdict in judged.verdicts] == ["pass", "inconclusive", "pass"]
    assert len(notes) == 1
    assert "no run is started for 7.0 s" in notes[0]


def test_a_command_whose_time_is_over_does_not_wait(tmp_path) -> None:
    found, waited, _ = paced(tmp_path, budget=lambda clock: Budget(Limits(time_s=3), lambda: clock[0]))
    assert (len(found), waited) == (2, [3.0])


@pytest.mark.parametrize(
    ("held_back", "overtaken"), [("", True), ("budget", False), ("begins", False), ("model", False)]
)
def test_the_agent_is_asked_the_next_thing_before_what_it_said_is_judged(tmp_path, held_back, overtaken) -> None:
    """Not where somebody counts runs until they are judged, nor where a model judges: it would be asked by many."""
    happened: list[str] = []

    class Asked(FakeAgent):
        async def ask(self, prompt, line) -> Answer:
            happened.append(f"asked {prompt}")
            await asyncio.sleep(0)
            return Answer("found")

    class Judging(FakeWorld):
        def limited(self, seconds):
            happened.append("judged")
            return super().limited(seconds)

    async def begins(trial) -> None:
        pass

    found = runner(tmp_path, Asked())
    found.executor, found.world, found.concurrency = LocalExecutor(), Judging(tmp_path), 2
    if held_back == "budget":
        found.budget = Budget(Limits(runs=9), lambda: 0.0)
    if held_back == "begins":
        found.hooks = Hooks(begins=begins)
    if held_back == "model":
        found.advice = Advice(adviser=object())  # type: ignore[arg-type]  # nobody asks it
    rule = Invariant(type="regex", id="says", pattern="found")
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[rule], prompts=("a", "b", "c", "d"))
    done = []
    asyncio.run(found.carry_out(plan.trials, done.append))
    assert len(done) == happened.count("judged") == 4
    assert all(judged.run.output == "found" for judged in done)
    assert (happened[:4] == [f"asked {prompt}" for prompt in "abcd"]) == overtaken
