"""Langfuse exports: real ones, and ones that are wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from flakestorm.importers.langfuse import recognises, traces
from importers_support import DATA, imported

FOLDER = DATA / "otel/langfuse"
OBSERVED = {
    "id": "o",
    "type": "GENERATION",
    "name": "chat",
    "startTime": "1",
    "model": "gpt",
    "input": "hi",
    "output": "ho",
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the real data is not at {FOLDER}")
@pytest.mark.parametrize(
    ("name", "asked", "sites"),
    [
        (
            "agno-2025-06-11",
            "What is currently trending",
            ["llm/gpt-4o-mini#1", "tool/duckduckgo_search#1", "llm/gpt-4o-mini#2"],
        ),
        ("beeai-2025-08-01", "I'm planning a trip to Barcelona", None),
        ("google-gemini-2025-08-01", "What is Langfuse?", ["llm/gemini-2.5-flash#1"]),
        (
            "koog-2025-08-26",
            "Greet and say goodbye",
            ["llm/gpt-4o#1", "tool/ByeTool#1", "tool/HelloTool#1", "llm/gpt-4o#2"],
        ),
        ("llamaindex-2025-06-05", "What is Langfuse?", ["llm/gpt-4o#1"]),
        ("openai-agents-2025-09-30", "What's the weather in Tokyo?", None),
        ("pydantic-ai-tools-2025-12-04", "programming", None),
    ],
)
def test_real_exports(name: str, asked: str, sites: list[str] | None) -> None:
    shown = imported(FOLDER / f"{name}.json")
    assert shown["input"].startswith(asked)
    assert shown["output"]
    assert sites in (None, [exchange["site"] for exchange in shown["exchanges"]])
    for exchange in shown["exchanges"]:
        reply = exchange["reply"]
        assert reply["text"] or reply["tool_calls"] or "holds no reply" in reply["error"]


def test_every_shape_of_export() -> None:
    trace = {"id": "t", "input": "hi", "output": "ho"}
    whole = {"trace": trace, "observations": [OBSERVED]}
    listed = [{**OBSERVED, "traceId": "t"}]
    for document in (whole, {**trace, "observations": [OBSERVED]}, [whole], {"data": listed, "meta": {}}, listed):
        assert recognises(document)
        (run,) = traces(document)
        assert (run.id, run.input, run.output) == ("t", "hi", "ho")


def test_usage_in_either_spelling_and_errors() -> None:
    old = {**OBSERVED, "usage": {"promptTokens": 3, "completionTokens": 4}}
    failed = {**OBSERVED, "id": "p", "output": None, "level": "ERROR", "statusMessage": "too long"}
    run = traces({"observations": [old, failed]})[0]
    assert b'"prompt_tokens":3' in run.crossings[0][1].body  # type: ignore[operator, union-attr]
    assert "too long" in str(run.crossings[1][1])


OFFER = {"type": "function", "function": {"name": "search", "description": "Finds.", "parameters": {"type": "object"}}}
ASKED_FOR = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": {"q": "example"}}}
TOOL_MESSAGE = {"type": "tool", "name": "search", "tool_call_id": "call_1", "content": [{"url": "https://e.test"}]}


def bodies(run: Any) -> list[tuple[Any, Any]]:
    return [(json.loads(call.body), json.loads(reply.body)) for call, reply in run.crossings]


def test_tools_that_langchain_s_handler_keeps_among_the_messages_are_on_offer_and_not_called() -> None:
    question = {"role": "user", "content": "Search"}
    answer = {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [ASKED_FOR]}}
    span = {**OBSERVED, "input": [question, {"role": "tool", "content": OFFER}], "output": answer}
    [(asked, said)] = bodies(traces({"observations": [span]})[0])
    assert asked["messages"] == [question]
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["search"]
    [call] = said["choices"][0]["message"]["tool_calls"]
    assert (call["id"], call["function"]["arguments"]) == ("call_1", '{"q":"example"}')


def test_a_span_that_gave_the_message_of_its_tool_is_that_tool_s_run() -> None:
    run = {
        "id": "b",
        "type": "SPAN",
        "name": "search",
        "startTime": "2",
        "input": "{'q': 'example'}",
        "metadata": {"inputs": {"q": "example"}},
        "output": TOOL_MESSAGE,
    }
    node = {**run, "id": "c", "name": "tools", "startTime": "3", "output": {"messages": [TOOL_MESSAGE]}}
    crossings = traces({"observations": [OBSERVED, run, node]})[0].crossings
    assert [(call.kind, call.name) for call, _ in crossings[1:]] == [("tool", "search")]
    assert json.loads(crossings[1][0].body) == {"q": "example"}
    assert json.loads(crossings[1][1].body) == [{"url": "https://e.test"}]  # type: ignore[union-attr, arg-type]


def test_traces_beside_their_observations() -> None:
    stated = [{"id": "s", "input": "one", "output": "1"}, {"id": "t", "input": "two", "output": "2"}]
    observed = [{**OBSERVED, "traceId": "t"}, {**OBSERVED, "id": "p", "traceId": "s"}]
    runs = traces({"traces": stated, "observations": observed})
    assert [(run.id, run.input, run.output) for run in runs] == [("t", "two", "2"), ("s", "one", "1")]
    with pytest.raises(ValueError, match="it holds no observations"):
        traces({"traces": stated, "observations": []})


def test_what_langchain_s_message_says_of_itself() -> None:
    message = {
        "type": "AIMessageChunk",
        "content": "ho",
        "tool_calls": [],
        "response_metadata": {"finish_reason": "STOP"},
        "usage_metadata": {"input_tokens": 12, "output_tokens": 3},
    }
    [(_, said)] = bodies(traces({"observations": [{**OBSERVED, "output": message}]})[0])
    assert said["choices"][0]["finish_reason"] == "STOP"
    assert (said["usage"]["prompt_tokens"], said["usage"]["completion_tokens"]) == (12, 3)
    [(_, said)] = bodies(traces({"observations": [{**OBSERVED, "inputUsage": 5, "outputUsage": 2}]})[0])
    assert said["usage"]["total_tokens"] == 7


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"trace": {}, "observations": {}}, "a list of 'observations' was expected"),
        ({"observations": [{"type": "SPAN"}]}, "observations[0].id"),
        ({"observations": [{"id": "a", "type": "THING"}]}, "observations[0].type: one of AGENT"),
        ({"id": "t", "observations": [{"id": "a", "type": "SPAN", "name": "x"}]}, "trace t: no span in it"),
    ],
)
def test_a_changed_schema_is_named_with_its_place(document: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        traces(document)


def test_metadata_as_text(tmp_path: Path) -> None:
    of = json.dumps({"attributes": {"gen_ai.tool.name": "search"}})
    run = traces({"observations": [OBSERVED, {**OBSERVED, "id": "b", "type": "TOOL", "metadata": of}]})[0]
    assert run.crossings[1][0].name == "search"
