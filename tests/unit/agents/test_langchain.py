"""Runnables: given the input as they want it, and their answer found in what they give back.

The stand-ins here do what LangChain and LangGraph do; tests/agents runs the real ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from agents_support import config
from flakestorm.agents.history import History
from flakestorm.agents.langchain import answer_of, as_runnable, input_maker
from flakestorm.agents.reading import read_value
from flakestorm.core.answer import AgentError
from flakestorm.errors import ConfigError


@dataclass
class Runnable:
    schema: Any = None
    says: Any = "fine"
    given: list[Any] = field(default_factory=list)
    configs: list[Any] = field(default_factory=list)

    def get_input_jsonschema(self) -> Any:
        if isinstance(self.schema, Exception):
            raise self.schema
        return self.schema

    async def ainvoke(self, value: Any, config: Any = None) -> Any:
        self.given.append(value)
        self.configs.append(config)
        return self.says


def fields(*names: str, required: tuple[str, ...] = (), **types: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": types.get(name, "string")} for name in names},
        "required": list(required),
    }


MESSAGES = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        (None, "hi"),
        (ValueError("a type without a schema"), "hi"),
        ({"type": "string"}, "hi"),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, "hi"),
        ({"type": "object", "properties": {}}, "hi"),
        (fields("messages", messages="array"), MESSAGES),
        (fields("messages", "remaining_steps", required=("messages",)), MESSAGES),
        ({"$ref": "#/$defs/S", "$defs": {"S": fields("messages")}}, MESSAGES),
        (fields("input"), {"input": "hi"}),
        (fields("chat_history", "input", required=("input",), chat_history="array"), {"input": "hi"}),
        (fields("topic", required=("topic",)), {"topic": "hi"}),
        (fields("topic"), {"topic": "hi"}),
        (fields("other", "topic", required=("topic",)), {"topic": "hi"}),
        (fields("language", "question"), {"question": "hi"}),
        (fields("turns", turns="array"), {"turns": [{"role": "user", "content": "hi"}]}),
    ],
)
def test_the_input_has_the_shape_that_is_asked_for(schema: Any, given: Any) -> None:
    assert input_maker(Runnable(schema), "a:b")("hi") == given


@pytest.mark.parametrize("schema", [fields("topic", "style"), fields("input", "style", required=("input", "style"))])
def test_what_one_text_cannot_fill_wants_a_template(schema: Any) -> None:
    with pytest.raises(ConfigError, match=r"a:b takes \w+, style, .*set agent\.request_template"):
        input_maker(Runnable(schema), "a:b")


@pytest.mark.parametrize(
    ("template", "given"),
    [
        ('{"topic": "{prompt}", "style": "short"}', {"topic": 'say "hi"', "style": "short"}),
        ("Traveller: {prompt}", 'Traveller: say "hi"'),
    ],
)
async def test_a_template_says_what_goes_in(template: str, given: Any) -> None:
    runnable = Runnable(fields("topic", "style"))
    agent = config(Path(), type="langchain", endpoint="a:b", request_template=template, method="GET").agent
    await as_runnable(runnable, agent)('say "hi"')
    assert runnable.given == [given]


def message(content: Any, kind: str = "ai") -> Any:
    return SimpleNamespace(type=kind, content=content)


class Itinerary(BaseModel):
    to: str


@pytest.mark.parametrize(
    ("said", "output"),
    [
        ("fine", "fine"),
        (None, ""),
        (message("fine"), "fine"),
        (message(["fi", {"type": "text", "text": "ne"}, {"type": "tool_use", "id": 1}]), "fine"),
        (message([{"type": "output_text", "text": "fine"}, {"type": "text"}]), "fine"),
        (message({"a": 1}), '{"a": 1}'),
        ([message("first"), message("fine")], "fine"),
        ({"messages": [message("hi", "human"), message("fine")]}, "fine"),
        ({"messages": [{"role": "assistant", "content": "fine"}]}, "fine"),
        ({"messages": [message("", "tool")], "structured_response": Itinerary(to="Oslo")}, '{"to": "Oslo"}'),
        ({"messages": [message("fine")], "structured_response": None}, "fine"),
        ({"input": "hi", "output": "fine"}, "fine"),
        ({"input": "hi", "answer": message("fine")}, "fine"),
        (Itinerary(to="Oslo"), '{"to": "Oslo"}'),
        (42, "42"),
    ],
)
def test_the_answer_is_found(said: Any, output: str) -> None:
    assert read_value(answer_of(said), None) == output


def test_a_graph_that_asks_a_human_has_not_answered() -> None:
    said = {"messages": [message("")], "__interrupt__": [SimpleNamespace(value={"approve": "book?"})]}
    got = read_value(answer_of(said), None)
    assert isinstance(got, AgentError)
    assert got.kind == "error"
    assert "asked a human" not in got.message
    assert 'stopped to ask a human: [{"approve": "book?"}]' in got.message


def test_a_state_without_the_usual_keys_wants_a_path() -> None:
    got = read_value(answer_of({"plan": "x"}), None)
    assert isinstance(got, AgentError)
    assert "plan" in got.message


async def test_a_path_leads_through_what_it_gave_back() -> None:
    runnable = Runnable(says={"trip": [Itinerary(to="Oslo")]})
    agent = config(Path(), type="langchain", endpoint="a:b", response_path="trip.0.to").agent
    assert await as_runnable(runnable, agent)("hi") == {"trip": [{"to": "Oslo"}]}


async def test_no_config_is_passed_along() -> None:
    runnable = Runnable()
    await as_runnable(runnable, config(Path(), type="langchain", endpoint="a:b").agent)("hi")
    assert runnable.configs == [None]


async def test_each_run_of_a_graph_that_keeps_threads_is_a_thread_of_its_own() -> None:
    runnable = Runnable()
    runnable.checkpointer = object()  # type: ignore[attr-defined]
    ask = as_runnable(runnable, config(Path(), type="langchain", endpoint="a:b").agent)
    await ask("hi")
    await ask("hi")
    threads = [each["configurable"]["thread_id"] for each in runnable.configs]
    assert len(set(threads)) == 2
    bound = SimpleNamespace(bound=runnable, config={"configurable": {"thread_id": "mine"}}, ainvoke=runnable.ainvoke)
    await as_runnable(bound, config(Path(), type="langchain", endpoint="a:b").agent)("hi")
    assert runnable.configs[-1] is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (SimpleNamespace(compile=lambda: None), "a graph that was not compiled; name what its compile"),
        (lambda text: text, "use agent.type: python"),
        (3, "of type int and has no ainvoke"),
    ],
)
def test_what_is_no_runnable(found: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        as_runnable(found, config(Path(), type="langchain", endpoint="a:b").agent)


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_conversation_is_one_thread_or_brings_its_messages(keeps: bool) -> None:
    runnable = Runnable(schema=fields("messages", messages="array"))
    if keeps:
        runnable.checkpointer = object()  # type: ignore[attr-defined]
    ask = as_runnable(runnable, config(Path(), type="langchain", endpoint="a:b").agent)
    history = History()
    await ask("hi", history=history)
    history.add("hi", "fine")
    await ask("and?", history=history)
    now = {"role": "user", "content": "and?"}
    assert runnable.given[1] == {"messages": [now] if keeps else [*history, now]}
    threads = {json.dumps(each) for each in runnable.configs}
    assert len(threads) == 1
    assert (history.thread in threads.pop()) == keeps
