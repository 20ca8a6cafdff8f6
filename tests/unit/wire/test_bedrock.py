from base64 import b64encode
from typing import Any

import orjson
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Asked, Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.bedrock import Bedrock, BedrockInvoke
from flakestorm.wire.eventstream import encode
from wire_support import Fired

WIRE, INVOKE = Bedrock(), BedrockInvoke()
RUNTIME = "https://bedrock-runtime.us-east-1.amazonaws.com/model"
USE = {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Paris", "days": 3}}}
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "let me see", "signature": "s"}}}


def answer(*blocks: dict[str, Any], stop: str = "end_turn") -> bytes:
    usage = {"inputTokens": 7, "outputTokens": 50, "totalTokens": 57}
    message = {"role": "assistant", "content": blocks}
    return orjson.dumps({"output": {"message": message}, "stopReason": stop, "usage": usage})


def edited(body: bytes, edit: Edit) -> Any:
    return orjson.loads(read(WIRE.edit(Reply(200, (("content-type", "application/json"),), body), edit)))


def blocks(body: bytes, edit: Edit) -> Any:
    return edited(body, edit)["output"]["message"]["content"]


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("us.amazon.nova-lite-v1%3A0/converse", "us.amazon.nova-lite-v1:0"),
        ("a/converse-stream", "a"),
        ("arn%3Aaws%3Abedrock%3A1%3Aprofile%2Fx/converse", "arn:aws:bedrock:1:profile/x"),
        ("a/invoke", None),
        ("a/b/converse", None),
    ],
)
def test_a_request_is_known_by_its_path_which_names_the_model(path: str, model: str | None) -> None:
    call = Call("POST", f"{RUNTIME}/{path}", body=b'{"messages":[]}')
    assert WIRE.model_of(call) == model
    assert WIRE.model_of(Call("POST", f"{RUNTIME}/{path}", body=b"{}")) is None


def test_a_request_is_read() -> None:
    body = {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Weather?"}, {"cachePoint": {"type": "default"}}]},
            {"role": "assistant", "content": [THOUGHT, USE]},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "sun"}, {"json": [1]}]}}],
            },
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "weather"}}, {"cachePoint": {}}]},
    }
    call = ToolCall("t1", "weather", '{"city":"Paris","days":3}')
    assert WIRE.asked(orjson.dumps(body)) == Asked(
        turns=(
            Turn("system", "Be brief."),
            Turn("user", "Weather?"),
            Turn("assistant", "", (call,)),
            Turn("user", "", (), (ToolResult("t1", "weather", "sun[1]"),)),
        ),
        tools=("weather",),
    )


def test_a_reply_is_read_without_reasoning_and_what_amazon_ran() -> None:
    own = {"toolUse": {"toolUseId": "x", "name": "nova_code_interpreter", "input": {}, "type": "server_tool_use"}}
    said = WIRE.said(answer(THOUGHT, {"text": "Sunny."}, own, USE, stop="tool_use"), stream=False)
    call = ToolCall("t1", "weather", '{"city":"Paris","days":3}')
    assert said == Said("Sunny.", (call,), "tool_use", Usage(7, 50))
    assert WIRE.said(b'{"message":"no"}', stream=True).error == "no"
    assert WIRE.said(b'{"output":', stream=False) == Said(complete=False)


def test_a_whole_reply_is_cut() -> None:
    fired = Fired()
    doc = edited(answer(THOUGHT, {"text": "The weather in Paris"}, USE), Edit(max_tokens=2, on_change=fired))
    assert doc["output"]["message"]["content"] == [THOUGHT, {"text": "The weat"}]
    assert (doc["stopReason"], doc["usage"]) == ("max_tokens", {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9})
    assert fired.times == 1
    assert blocks(answer(USE), Edit(max_tokens=10)) == [
        {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Paris"}}}
    ]


def test_text_is_mapped_and_tool_calls_are_left_out() -> None:
    said = answer(THOUGHT, {"text": "a "}, USE, {"text": "b"})
    assert blocks(said, Edit(text=str.upper)) == [THOUGHT, {"text": "A "}, USE, {"text": "B"}]
    assert blocks(said, Edit(text=lambda _: "", drop_tool_calls=True)) == [THOUGHT]
    assert blocks(answer(THOUGHT, USE), Edit(text=lambda _: "new")) == [THOUGHT, {"text": "new"}, USE]


def test_a_binary_stream_that_is_none_passes_as_it_is() -> None:
    for body in (b"\0\0\0\x10", b"\0" * 40, b"no message"):
        reply = Reply(200, (("content-type", "application/vnd.amazon.eventstream"),), body)
        assert read(WIRE.edit(reply, Edit(max_tokens=0, text=str.upper))) == body
    assert not WIRE.said(b"\0\0\0\x10", stream=True).complete


def test_an_invocation_is_named_and_left_unread() -> None:
    signed = (("Authorization", "AWS4-HMAC-SHA256 Credential=A/20250101/us-east-1/bedrock/aws4_request, Signature=x"),)
    assert INVOKE.model_of(Call("POST", f"{RUNTIME}/m%3A0/invoke", body=b"?")) == "m:0"
    assert INVOKE.model_of(Call("POST", f"{RUNTIME}/m/invoke-with-response-stream")) == "m"
    assert INVOKE.model_of(Call("POST", "http://127.0.0.1:1/model/m/invoke", signed)) == "m"
    assert INVOKE.model_of(Call("POST", "http://127.0.0.1:1/model/m/invoke")) is None
    assert INVOKE.asked(b'{"prompt":"x"}') == Asked()
    assert INVOKE.said(b'{"completion":"x"}', stream=False) == Said()
    assert INVOKE.said(b'{"message":"no"}', stream=False).error == "no"
    reply = Reply(200, (), b'{"completion":"x"}')
    assert read(INVOKE.edit(reply, Edit(max_tokens=0))) == b'{"completion":"x"}'


ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "tool_use",
    "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}},
    ],
    "usage": {"input_tokens": 9, "output_tokens": 20},
}
ANTHROPIC_SAID = Said(
    "Let me look.", (ToolCall("toolu_1", "weather", '{"city":"Paris"}'),), "tool_use", Usage(9, 20), "claude"
)


def chunks(*events: dict[str, Any]) -> bytes:
    """The events as Amazon streams them: each in base64, in a JSON document, in a binary message."""
    wrapped = [orjson.dumps({"bytes": b64encode(orjson.dumps(event)).decode(), "p": "abc"}) for event in events]
    return b"".join(encode(each, {":event-type": "chunk", ":message-type": "event"}) for each in wrapped)


def test_anthropic_s_models_are_understood_by_way_of_invoke() -> None:
    asked = {"anthropic_version": "bedrock-2023-05-31", "messages": [{"role": "user", "content": "Weather?"}]}
    assert INVOKE.asked(orjson.dumps(asked)).turns == (Turn("user", "Weather?"),)
    body = orjson.dumps(ANTHROPIC)
    assert INVOKE.said(body, stream=False) == ANTHROPIC_SAID
    edited = INVOKE.edit(Reply(200, (("content-type", "application/json"),), body), Edit(max_tokens=1))
    assert INVOKE.said(read(edited), stream=False).text == "Let"
    refused = encode(b'{"message":"slow down"}', {":exception-type": "throttlingException"})
    start = {"type": "message_start", "message": {**ANTHROPIC, "content": []}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me look."}}
    last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}
    stream = chunks(start, block, delta, last, {"type": "message_stop"})
    said = INVOKE.said(stream, stream=True)
    assert (said.text, said.finish, said.usage, said.complete) == ("Let me look.", "end_turn", Usage(9, 4), True)
    broken = INVOKE.said(chunks(start, block, delta) + refused, stream=True)
    assert (broken.text, broken.error, broken.complete) == ("Let me look.", "slow down", False)
    assert INVOKE.said(chunks({"completion": "x"}), stream=True) == Said()
    assert INVOKE.said(encode(b'{"bytes":"?"}', {":event-type": "chunk"}), stream=True) == Said()
    assert INVOKE.said(refused, stream=True).error == "slow down"
    reply = Reply(200, (("content-type", "application/vnd.amazon.eventstream"),), stream)
    cut = read(INVOKE.edit(reply, Edit(max_tokens=1)))
    assert (INVOKE.said(cut, stream=True).text, INVOKE.said(cut, stream=True).finish) == ("Let", "max_tokens")


@pytest.mark.parametrize("wire", [WIRE, INVOKE], ids=lambda wire: wire.name)
def test_errors_are_amazon_s(wire: Any) -> None:
    assert wire.failure(Failure("rate_limit"), Call("POST", f"{RUNTIME}/m/invoke")).status == 429
