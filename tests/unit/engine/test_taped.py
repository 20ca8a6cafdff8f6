import asyncio
import json

from engine_support import FakeAgent, runner, says, scenario
from flakestorm.core.answer import Answer
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import drive
from flakestorm.core.stream import pump
from flakestorm.engine.plan import make_plan


def carry_out(tmp_path, agent, *scenarios, prompts=("a",)):
    plan = make_plan("x", scenarios=scenarios, invariants=[says("found", when="tool_faults_active")], prompts=prompts)
    found = []
    asyncio.run(runner(tmp_path, agent).carry_out(plan.trials, found.append))
    return found


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
