import asyncio
import json

from engine_support import FakeAgent, FakeBoundary, FakeWorld, OneByOne, run_of, says, scenario
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import drive
from flakestorm.core.stream import pump
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


def test_a_check_that_never_ends_is_inconclusive(tmp_path) -> None:
    from contextlib import contextmanager

    class Impatient(FakeWorld):
        @contextmanager
        def limited(self, seconds):
            raise TimeoutError
            yield

    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[says("found")], prompts=["a"])
    found = run_of(plan.trials[0])
    from flakestorm.engine.runner import judged

    ((_, verdict),) = judged(plan.trials[0], found.run, found.view, Impatient(tmp_path)).verdicts
    assert verdict.outcome == "inconclusive"
    assert "took longer" in verdict.reason


def test_tools_that_only_the_model_spoke_of_are_seen_and_not_counted(tmp_path) -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    said = {"choices": [{"message": {"role": "assistant", "tool_calls": [asked]}, "finish_reason": "tool_calls"}]}

    class Modern(FakeAgent):
        async def ask(self, prompt, line) -> Answer:
            url, body = "https://api.openai.com/v1/chat/completions", b'{"model": "m", "messages": []}'
            reply = drive(
                line.pipeline(Call("POST", url, body=body)), lambda _: Reply(200, body=json.dumps(said).encode()), print
            )
            list(pump(reply, print))
            return await super().ask(prompt, line)

    (judged,) = carry_out(tmp_path, Modern(), scenario("calm"))
    assert judged.run.seen == ("search", "book")
    assert judged.run.calls == {"llm": 1, "tool": 1, "mcp": 0, "http": 0}


def test_tools_that_the_boundary_holds_are_sure_to_be_seen(tmp_path) -> None:
    held = runner(tmp_path, FakeAgent())
    held.visible = ("search",)
    held.boundary.tools = ("book",)
    plan = make_plan("x", scenarios=[scenario("calm")], invariants=[says("found")], prompts=("a",))
    found = []
    asyncio.run(held.carry_out(plan.trials, found.append))
    assert found[0].view.visible == ("search", "book")
