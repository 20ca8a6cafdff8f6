import json

import orjson
import pytest

from flakestorm.wire.protocols import wire_of
from flakestorm.wire.whole import body_for
from wire_responses import message, response, tool

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Hi",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
            },
            "finish_reason": "tool_calls",
        }
    ],
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
        {"type": "redacted_thinking", "data": "x"},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
OLLAMA = {"model": "q", "message": {"role": "assistant", "content": "Hi"}, "done": True, "done_reason": "stop"}
GENERATED = {"model": "q", "response": "Hi", "done": True, "done_reason": "stop"}
REFUSED = {**message("no"), "content": [{"type": "refusal", "refusal": "no"}]}


@pytest.mark.parametrize(
    ("wire", "document"),
    [
        ("openai_chat", CHAT),
        ("anthropic", MESSAGE),
        ("openai_responses", response(message("Hi", "there"), tool("f", '{"a": 1}'))),
        ("openai_responses", response(REFUSED, status="incomplete")),
        ("gemini", GEMINI),
        ("ollama", OLLAMA),
        ("ollama", GENERATED),
    ],
)
def test_a_document_told_as_a_stream_says_the_same(wire: str, document: dict) -> None:
    spoken = wire_of(wire)
    assert spoken is not None
    streamed = body_for(wire, orjson.dumps(document), stream=True)
    said, whole = spoken.said(streamed, stream=True), spoken.said(orjson.dumps(document), stream=False)
    assert (said.text, said.finish, said.complete) == (whole.text, whole.finish, True)
    assert [(c.id, c.name, json.loads(c.arguments)) for c in said.tool_calls] == [
        (c.id, c.name, json.loads(c.arguments)) for c in whole.tool_calls
    ]


@pytest.mark.parametrize(
    ("wire", "body", "stream"),
    [
        ("openai_chat", b"data: {}\n\n", True),
        ("openai_chat", orjson.dumps(CHAT), False),
        ("openai_chat", b'{"error": {"message": "no"}}', True),
        ("anthropic", b'{"type": "error"}', True),
        ("openai_responses", b'{"error": {}}', True),
        ("", b"{}", True),
    ],
)
def test_everything_else_is_given_as_it_is(wire: str, body: bytes, stream: bool) -> None:
    assert body_for(wire, body, stream=stream) == body


def test_a_document_of_ollama_that_says_nothing_is_one_line() -> None:
    assert body_for("ollama", b'{"error": "no"}', stream=True) == b'{"error":"no"}\n'
