import asyncio

from engine_support import FakeAgent, FakeBoundary, FakeWorld, OneByOne, run_of, says, scenario
from flakestorm.core.answer import AgentError, Answer
from flakestorm.engine.plan import make_plan
from flakestorm.engine.runner import Runner
from flakestorm.tape.reader import Tape


def runner(tmp_path, agent) -> Runner:
    return Runner(
        agent=agent,
        boundary=FakeBoundary(),
        executor=OneByOne(),
        world=FakeWorld(tmp_path),
        seed=1,
        tools=[("search", "*/search*")],
        listener=lambda event: None,
        concurrency=1,
        reproduce=lambda trial, schedule, ledger: "",
    )


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
