from typing import Any

import orjson
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.interactions import Interactions
from flakestorm.wire.sse import encode

WIRE = Interactions()
URL = "https://generativelanguage.googleapis.com/v1beta/interactions"
CALL = {"type": "function_call", "id": "f1", "name": "weather", "arguments": {"city": "Oslo"}}
SAID = {"type": "model_output", "content": [{"type": "text", "text": "Sunny."}]}
THOUGHT = {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]}
COUNTED = {"total_input_tokens": 7, "total_output_tokens": 5, "total_thought_tokens": 9, "total_tokens": 21}
WHOLE: dict[str, Any] = {"id": "v1_a", "object": "interaction", "model": "gemini-x", "status": "requires_action"}


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        (URL, {"model": "gemini-x", "input": "hi"}, "gemini-x"),
        (URL + "/?alt=sse", {"agent": "deep-research", "input": []}, "deep-research"),
        (URL, {"model": "gemini-x"}, None),
        (URL, {"input": "hi"}, None),
        (URL + "/v1_a", {"model": "gemini-x", "input": "hi"}, None),
    ],
)
def test_a_request_is_known_by_its_path_and_what_it_asks(url: str, body: object, model: str | None) -> None:
    call = Call("POST", url, body=orjson.dumps(body))
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)
    assert not WIRE.recognises(Call("GET", url, body=call.body))


@pytest.mark.parametrize(
    ("given", "turns"),
    [
        ("hi", (Turn("user", "hi"),)),
        ({"type": "text", "text": "hi"}, (Turn("user", "hi"),)),
        (
            [{"type": "user_input", "content": [{"type": "text", "text": "hi"}, {"type": "image"}]}],
            (Turn("user", "hi"),),
        ),
        ([{"role": "user", "content": "hi"}, SAID], (Turn("user", "hi"), Turn("assistant", "Sunny."))),
        (
            [THOUGHT, CALL, {"type": "function_result", "call_id": "f1", "result": {"sky": "clear"}}],
            (
                Turn("assistant", "", (ToolCall("f1", "weather", '{"city":"Oslo"}'),)),
                Turn("tool", "", (), (ToolResult("f1", "weather", '{"sky":"clear"}'),)),
            ),
        ),
        (
            [
                {
                    "type": "function_result",
                    "call_id": "f1",
                    "name": "weather",
                    "result": [{"type": "text", "text": "sun"}],
                }
            ],
            (Turn("tool", "", (), (ToolResult("f1", "weather", "sun"),)),),
        ),
    ],
)
def test_a_conversation_is_read_turn_by_turn(given: object, turns: tuple[Turn, ...]) -> None:
    tools = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}, {"type": "google_search"}]
    body = {"model": "gemini-x", "stream": True, "system_instruction": "Be kind.", "input": given, "tools": tools}
    asked = WIRE.asked(orjson.dumps(body))
    assert asked.turns == (Turn("system", "Be kind."), *turns)
    assert (asked.model, asked.stream, asked.tools) == ("gemini-x", True, ("weather",))
    assert asked.parameters == {"weather": {"type": "object"}}


UNDERSTOOD = Said("Sunny.", (ToolCall("f1", "weather", '{"city":"Oslo"}'),), "requires_action", Usage(7, 5), "gemini-x")


def events(*docs: dict[str, Any]) -> bytes:
    return b"".join(encode(orjson.dumps(doc), name=doc["event_type"]) for doc in docs)


def delta(index: int, **said: str) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": said}


STREAM = [
    {"event_type": "interaction.created", "interaction": {**WHOLE, "status": "in_progress"}},
    {"event_type": "step.start", "index": 0, "step": {"type": "thought"}},
    delta(0, type="thought_signature", signature="c2ln"),
    {"event_type": "step.start", "index": 1, "step": {"type": "model_output"}},
    delta(1, type="text", text="Sun"),
    delta(1, type="text", text="ny."),
    {"event_type": "step.start", "index": 2, "step": {**CALL, "arguments": {}}},
    delta(2, type="arguments_delta", arguments='{"city":'),
    delta(2, type="arguments_delta", arguments='"Oslo"}'),
    {"event_type": "step.stop", "index": 2},
    {"event_type": "interaction.completed", "interaction": {**WHOLE, "usage": COUNTED}},
]


def test_a_reply_whole_and_streamed() -> None:
    whole = orjson.dumps({**WHOLE, "steps": [THOUGHT, SAID, CALL], "usage": COUNTED})
    assert WIRE.said(whole, stream=False) == UNDERSTOOD
    assert WIRE.said(events(*STREAM), stream=True) == UNDERSTOOD
    cut = WIRE.said(events(*STREAM[:5]), stream=True)
    assert (cut.text, cut.finish, cut.model, cut.complete) == ("Sun", None, "gemini-x", False)
    last = {"event_type": "interaction.completed", "interaction": {**WHOLE, "usage": COUNTED, "steps": [SAID, CALL]}}
    assert WIRE.said(events(last), stream=True) == UNDERSTOOD


def test_errors_are_read_and_are_google_s() -> None:
    assert WIRE.said(b'{"error":{"code":429,"message":"slow down"}}', stream=True).error == "slow down"
    broken = WIRE.said(events(*STREAM[:5], {"event_type": "error", "error": {"message": "gone"}}), stream=True)
    assert (broken.error, broken.complete) == ("gone", False)
    reply = WIRE.failure(Failure("rate_limit"), Call("POST", URL, body=b'{"model":"m","input":"x"}'))
    assert (reply.status, orjson.loads(read(reply))["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")


def test_what_is_said_passes_as_it_is() -> None:
    reply = Reply(200, (("content-type", "text/event-stream"),), events(*STREAM))
    assert WIRE.edit(reply, Edit(text=str.upper, max_tokens=0)) is reply
    assert WIRE.framing(b"data: ", "text/event-stream") is not None
    assert WIRE.said(b"{", stream=False) == Said(complete=False)
