from dataclasses import replace

import orjson
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.completions import Completions
from flakestorm.wire.sse import encode

WIRE = Completions()
OPENAI, COHERE = "https://api.openai.com/v1/completions", "https://api.cohere.com/v2/chat"


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        (OPENAI, {"model": "gpt-3.5-turbo-instruct", "prompt": "x"}, "gpt-3.5-turbo-instruct"),
        ("https://x.openai.azure.com/openai/deployments/my%20d/completions?api-version=1", {"prompt": "x"}, "my d"),
        (COHERE, {"model": "command-a", "messages": [{"role": "user", "content": "x"}]}, "command-a"),
        ("https://api.cohere.com/v1/chat", {"model": "command-r", "message": "x"}, "command-r"),
        ("https://api.openai.com/v1/chat/completions", {"model": "gpt-4o", "prompt": "x"}, None),
        (OPENAI, {"model": "gpt-4o"}, None),
        (COHERE, {"model": "command-a", "prompt": "x"}, None),
        ("https://my.test/v2/chat", {"message": "hello, agent"}, None),
        ("https://my.test/completions", b"not JSON", None),
    ],
)
def test_a_request_is_known_by_its_path_and_what_is_asked(url: str, body: object, model: str | None) -> None:
    call = Call("POST", url, body=body if isinstance(body, bytes) else orjson.dumps(body))
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)
    assert not WIRE.recognises(Call("GET", url, body=call.body))


def test_a_completion_whole_and_streamed() -> None:
    choice = {"index": 0, "text": "It is ", "finish_reason": None}
    counted = {"prompt_tokens": 14, "completion_tokens": 16}
    whole = {"model": "m", "choices": [{**choice, "finish_reason": "length"}, {"index": 1, "text": "x"}]}
    assert WIRE.said(orjson.dumps({**whole, "usage": counted}), stream=False) == Said(
        "It is ", (), "length", Usage(14, 16), "m"
    )
    chunks = [{"model": "m", "choices": [choice]}, whole, {"model": "m", "choices": [], "usage": counted}]
    body = b"".join(encode(orjson.dumps(chunk)) for chunk in chunks)
    said = Said("It is It is ", (), "length", Usage(14, 16), "m")
    assert WIRE.said(body + encode(b"[DONE]"), stream=True) == said
    assert WIRE.said(body, stream=True) == replace(said, complete=False)
    asked = WIRE.asked(b'{"model":"m","prompt":["x",7,"y"],"stream":true}')
    assert (asked.model, asked.stream, asked.turns) == ("m", True, (Turn("user", "x"), Turn("user", "y")))


COHERE_CALL = {"id": "f_1", "type": "function", "function": {"name": "find", "arguments": '{"q":"x"}'}}
COUNTED = {
    "billed_units": {"input_tokens": 5, "output_tokens": 2},
    "tokens": {"input_tokens": 96.0, "output_tokens": 2},
}


def test_cohere_s_answer_whole_and_streamed() -> None:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Sunny."}]
    message = {"role": "assistant", "tool_plan": "I will look.", "content": content, "tool_calls": [COHERE_CALL]}
    said = Said("Sunny.", (ToolCall("f_1", "find", '{"q":"x"}'),), "TOOL_CALL", Usage(96, 2))
    whole = {"id": "c", "finish_reason": "TOOL_CALL", "message": message, "usage": COUNTED}
    assert WIRE.said(orjson.dumps(whole), stream=False) == said
    pieces = {**COHERE_CALL, "function": {"name": "find", "arguments": ""}}
    docs = [
        {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant", "content": []}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will look."}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"thinking": "hm"}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Sun"}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "ny."}}}},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": pieces}}},
        *(
            {
                "type": "tool-call-delta",
                "index": 0,
                "delta": {"message": {"tool_calls": {"function": {"arguments": a}}}},
            }
            for a in ('{"q":', '"x"}')
        ),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": COUNTED}},
    ]
    body = b"".join(encode(orjson.dumps(doc), name=str(doc["type"])) for doc in docs)
    assert WIRE.said(body, stream=True) == said
    assert not WIRE.said(body[:-300], stream=True).complete


def test_cohere_s_first_version() -> None:
    whole = {"text": "Sunny.", "finish_reason": "COMPLETE", "meta": COUNTED}
    calls = {"tool_calls": [{"name": "find", "parameters": {"q": "x"}}]}
    said = Said("Sunny.", (ToolCall("", "find", '{"q":"x"}'),), "COMPLETE", Usage(96, 2))
    assert WIRE.said(orjson.dumps({**whole, **calls}), stream=False) == said
    lines = [
        {"event_type": "text-generation", "text": "Sun"},
        {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": {**whole, **calls}},
    ]
    assert WIRE.said(b"".join(orjson.dumps(line) + b"\n" for line in lines), stream=False) == said
    assert WIRE.said(orjson.dumps(lines[0]), stream=False) == Said("Sun", complete=False)
    asked = {"model": "m", "message": "Now?", "chat_history": [{"role": "CHATBOT", "message": "Hello."}]}
    assert WIRE.asked(orjson.dumps(asked)).turns == (Turn("chatbot", "Hello."), Turn("user", "Now?"))


def test_a_conversation_with_cohere() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {"role": "assistant", "tool_calls": [COHERE_CALL]},
        {"role": "tool", "tool_call_id": "f_1", "content": [{"type": "text", "text": "sun"}]},
        {"role": "tool", "tool_call_id": "f_1", "content": [{"type": "document", "document": {"data": {"t": 21}}}]},
    ]
    tools = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]
    asked = WIRE.asked(orjson.dumps({"model": "m", "messages": messages, "tools": tools}))
    assert asked.turns == (
        Turn("user", "Weather?"),
        Turn("assistant", "", (ToolCall("f_1", "find", '{"q":"x"}'),)),
        Turn("tool", "", (), (ToolResult("f_1", "find", "sun"),)),
        Turn("tool", "", (), (ToolResult("f_1", "find", '{"t":21}'),)),
    )
    assert (asked.tools, asked.parameters) == (("find",), {"find": {"type": "object"}})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"data: {}",
        b'{"message":7,"delta":[]}',
        b'{"choices":[{"index":0,"text":{}}],"usage":{"tokens":1}}',
    ],
)
def test_what_nobody_meant_is_read_as_far_as_it_can_be(body: bytes) -> None:
    for stream in (True, False):
        assert WIRE.said(body, stream=stream).text == ""
    assert WIRE.asked(body).turns == ()


def test_errors_are_read() -> None:
    assert WIRE.said(b'{"error":{"message":"no"}}', stream=False).error == "no"
    assert WIRE.said(b'{"id":"c","message":"no"}', stream=True).error == "no"
    assert WIRE.said(b'{"id":"c","message":{"role":"assistant"}}', stream=False).error is None


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server_error", "timeout"])
def test_errors_are_those_of_the_provider(kind: str) -> None:
    failure = Failure(kind)  # type: ignore[arg-type]
    openai = WIRE.failure(failure, Call("POST", OPENAI, body=b'{"model":"m","prompt":"x"}'))
    cohere = WIRE.failure(failure, Call("POST", COHERE, body=b'{"model":"m","messages":[1]}'))
    assert set(orjson.loads(read(openai))["error"]) == {"message", "type", "param", "code"}
    assert set(orjson.loads(read(cohere))) == {"message"}
    assert cohere.status in (429, 500, 503)


def test_what_is_said_passes_as_it_is() -> None:
    reply = Reply(200, (), b'{"choices":[]}')
    assert WIRE.edit(reply, Edit(text=str.upper, max_tokens=0)) is reply
    assert WIRE.framing(b"data: ", "text/event-stream") is not None
    assert WIRE.framing(b'{"event_type":', "application/stream+json") is None
    call = Call("POST", OPENAI, body=b"{}")
    assert WIRE.failure_event(Failure("overloaded"), call, after=1) is None
    assert WIRE.blocked(call) is None
