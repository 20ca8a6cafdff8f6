"""LangSmith runs: real batches, trees, and ones that are wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest

from flakestorm.importers.langsmith import recognises, traces
from importers_support import DATA, imported

FOLDER = DATA / "otel/langsmith"
CONSTRUCTED = {"type": "constructor", "id": ["AIMessage"]}
ROOT = {
    "id": "r",
    "trace_id": "r",
    "run_type": "chain",
    "name": "agent",
    "inputs": {"input": "hi"},
    "outputs": {"output": "ho"},
}
MODEL = {"id": "m", "trace_id": "r", "parent_run_id": "r", "run_type": "llm", "name": "ChatOpenAI", "start_time": "1",
         "inputs": {"messages": [[{"type": "constructor", "id": ["HumanMessage"], "kwargs": {"content": "hi"}}]]},
         "outputs": {"generations": [[{"message": {**CONSTRUCTED, "kwargs": {"content": "ho"}}}]]},
         "extra": {"invocation_params": {"model": "gpt"}}}  # fmt: skip
TOOL = {
    "id": "t",
    "trace_id": "r",
    "parent_run_id": "r",
    "run_type": "tool",
    "name": "search",
    "start_time": "2",
    "inputs": {"input": "{'q': 1}"},
    "outputs": {"output": {"content": "found", "type": "tool", "tool_call_id": "c"}},
}


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the real data is not at {FOLDER}")
@pytest.mark.parametrize(
    ("name", "model", "words"),
    [
        ("", "gpt-4o-mini", "Howdy!"),
        ("reasoning", "o1-mini", "Certainly!"),
        ("stream", "gpt-4o-mini", "Howdy!"),
        ("stream_no_usage", "gpt-4o-mini", "Howdy!"),
    ],
)
def test_real_batches(name: str, model: str, words: str) -> None:
    shown = imported(FOLDER / f"langsmith_py_wrap_openai_{name}.json")
    (exchange,) = shown["exchanges"]
    assert (exchange["site"], exchange["reply"]["finish"]) == (f"llm/{model}#1", "stop")
    assert shown["output"].startswith(words)
    assert exchange["reply"]["text"] == shown["output"]
    assert (exchange["reply"]["usage"]["input"] is None) == (name == "stream_no_usage")


@pytest.mark.parametrize(
    "document", [[ROOT, MODEL, TOOL], {"runs": [TOOL, MODEL, ROOT]}, {**ROOT, "child_runs": [MODEL, TOOL]}]
)
def test_a_tree_in_every_shape(document: Any) -> None:
    assert recognises(document)
    (run,) = traces(document)
    assert (run.input, run.output) == ("hi", "ho")
    (model, _), (tool, reply) = run.crossings
    assert b'"gpt"' in model.body
    assert (tool.name, reply.body) == ("search", b"found")  # type: ignore[union-attr]


def test_a_patch_completes_its_post() -> None:
    post = {**MODEL, "trace_id": "m", "parent_run_id": None, "outputs": None}
    patch = {"id": "m", "trace_id": "m", "outputs": MODEL["outputs"]}
    assert traces({"post": [post], "patch": [patch]})[0].output == "ho"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([{"run_type": "llm"}], "[0].id"),
        ([{"id": "a", "trace_id": "a"}], "[0].run_type"),
        ([{"id": "a", "run_type": "llm", "inputs": "x"}], "[0].inputs"),
        ([], "it holds no runs"),
        ([{"id": "a", "run_type": "chain"}], "run a: no span"),
    ],
)
def test_a_changed_schema_is_named_with_its_place(document: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        traces(document)
