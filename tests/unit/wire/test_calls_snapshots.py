from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from flakestorm.wire.base import ToolCall
from flakestorm.wire.bedrock import ConverseAnswers
from flakestorm.wire.calls_snapshots import snapshot_calls
from flakestorm.wire.gemini.parts import GeminiAnswers
from flakestorm.wire.ollama.protocol import OllamaAnswers
from wire_ollama import chat


def rename(call: ToolCall) -> ToolCall:
    return replace(call, name="other", arguments='{"n":1}')


def broken(call: ToolCall) -> ToolCall:
    return replace(call, arguments='{"eur":12')


def candidate(*parts: dict[str, object], finish: str | None = None) -> dict[str, object]:
    answer = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [{**answer, **({"finishReason": finish} if finish else {})}]}


def test_a_call_that_comes_in_pieces_is_left_alone() -> None:
    docs = [
        candidate({"functionCall": {"name": "pay", "willContinue": True}}),
        candidate({"functionCall": {"partialArgs": [{"jsonPath": "$.eur", "numberValue": 1}], "willContinue": True}}),
        candidate({"functionCall": {}}, finish="STOP"),
    ]
    before = orjson.dumps(docs)
    assert snapshot_calls(GeminiAnswers()).put(docs, rename) == set()
    assert orjson.dumps(docs) == before


def test_a_call_without_arguments_can_be_given_some() -> None:
    doc = candidate({"functionCall": {"name": "ping"}})
    assert snapshot_calls(GeminiAnswers()).put([doc], rename) == {0}
    assert doc["candidates"][0]["content"]["parts"] == [{"functionCall": {"name": "other", "args": {"n": 1}}}]  # type: ignore[index]


def test_gemini_ends_without_a_call_where_one_was_malformed() -> None:
    docs = [
        candidate({"text": "Well."}),
        candidate({"functionCall": {"name": "pay", "args": {"eur": 120}}}, {"functionCall": {"name": "ping"}}),
        candidate({"text": ""}, finish="STOP"),
    ]
    assert snapshot_calls(GeminiAnswers()).put(docs, broken) == {1, 2}
    assert b"functionCall" not in orjson.dumps(docs)
    assert docs[2]["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"  # type: ignore[index]


def test_so_does_converse() -> None:
    message = {
        "role": "assistant",
        "content": [{"text": "Well."}, {"toolUse": {"toolUseId": "t", "name": "pay", "input": {}}}],
    }
    doc = {"output": {"message": message}, "stopReason": "tool_use"}
    assert snapshot_calls(ConverseAnswers()).put([doc], broken) == {0}
    assert (message["content"], doc["stopReason"]) == ([{"text": "Well."}], "malformed_tool_use")


@pytest.mark.parametrize("text", ["", "Well. "])
def test_ollama_has_it_in_the_text(text: str) -> None:
    doc = chat(text, ("pay", {"eur": 120}))
    assert snapshot_calls(OllamaAnswers()).put([doc], broken) == {0}
    assert doc["message"]["content"] == text + '{"name": "pay", "arguments": {"eur":12'
    assert "tool_calls" not in doc["message"]
