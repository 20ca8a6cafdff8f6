from __future__ import annotations

import json
from dataclasses import replace

import pytest

from faults_support import World, llm_call, scene, stream
from flakestorm.config.model import LlmFault
from flakestorm.core.call import Reply
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.faults.base import llm_faults
from flakestorm.faults.llm import ARGUMENTS
from flakestorm.wire.classify import wire_of

MODES = ("timeout", "rate_limit", "truncated_response", "empty", "garbage")
WORDS = "Your flight to Oslo is booked for Monday morning at nine, and a window seat has been reserved for you too."


def fault(fired: list[str], mode: str, *, seed: int = 1, **settings: object) -> Interceptor:
    spec = LlmFault(mode=mode, **settings)  # type: ignore[arg-type]
    return llm_faults.get(mode)(spec, scene(fired, Site("llm", "gpt-4o", 1), seed))


def openai(text: str | None = WORDS, *, streamed: bool = False, tools: bool = False) -> Reply:
    calls = [{"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": '{"eur": 120}'}}]
    finish = "tool_calls" if tools else "stop"
    head = {"id": "chatcmpl-1", "created": 1, "model": "gpt-4o"}
    if not streamed:
        message = {"role": "assistant", "content": text, **({"tool_calls": calls} if tools else {})}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 9, "completion_tokens": 30, "total_tokens": 39}
        body = json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        return Reply(200, (("content-type", "application/json"), ("content-length", str(len(body)))), body.encode())
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word + " "} for word in (text or "").split()]
    deltas += [{"tool_calls": [{"index": 0, **calls[0]}]}] if tools else []
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [json.dumps({**head, "object": "chat.completion.chunk", "choices": [c]}) for c in choices]
    return stream(*(f"data: {event}\n\n".encode() for event in [*events, "[DONE]"]))


def anthropic(text: str = WORDS, *, streamed: bool = False) -> Reply:
    usage = {"input_tokens": 9, "output_tokens": 30}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_sequence": None}
    if not streamed:
        content = [{"type": "text", "text": text}]
        body = {**message, "content": content, "stop_reason": "end_turn", "usage": usage}
        return Reply(200, (("content-type", "application/json"),), json.dumps(body).encode())
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word + " "}}
            for word in text.split()
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return stream(*(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events))


REPLIES = {
    "openai whole": ("openai_chat", openai(), "length"),
    "openai streamed": ("openai_chat", openai(streamed=True), "length"),
    "anthropic whole": ("anthropic", anthropic(), "max_tokens"),
    "anthropic streamed": ("anthropic", anthropic(streamed=True), "max_tokens"),
}
each_reply = pytest.mark.parametrize(("wire", "reply", "cut"), REPLIES.values(), ids=REPLIES)


def cross(stage: Interceptor, reply: Reply, wire: str):  # type: ignore[no-untyped-def]
    world = World(reply)
    seen, body = world.read(stage, llm_call(wire=wire))
    protocol = wire_of(wire)
    assert protocol is not None
    return protocol.said(body, stream=seen.streamed), world


def test_every_mode_is_registered_and_every_argument_is_a_setting() -> None:
    assert set(MODES) <= set(llm_faults)
    assert set(ARGUMENTS) <= set(MODES)
    assert set(ARGUMENTS.values()) <= set(LlmFault.model_fields)


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", ""])
def test_timeout_waits_and_fails_without_asking_the_model(wire: str) -> None:
    world, fired = World(), list[str]()
    with pytest.raises(CallFailed) as failure:
        world.cross(fault(fired, "timeout", delay_ms=250), llm_call(wire=wire))
    assert (failure.value.how, failure.value.injected) == ("timeout", True)
    assert (world.asked, world.slept, fired) == ([], [0.25], ["no answer within 250 ms"])


def test_timeout_takes_thirty_seconds_by_default() -> None:
    world = World()
    with pytest.raises(CallFailed):
        world.cross(fault([], "timeout"), llm_call())
    assert world.slept == [30.0]


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
@pytest.mark.parametrize(("settings", "wait"), [({}, "50"), ({"retry_after_ms": 7}, "7")])
def test_rate_limit_is_the_providers_own_429(wire: str, settings: dict[str, int], wait: str) -> None:
    world, fired = World(), list[str]()
    reply, body = world.read(fault(fired, "rate_limit", message="slow down", **settings), llm_call(wire=wire))
    assert reply.status == 429
    assert json.loads(body)["error"]["message"] == "slow down"
    assert dict(reply.headers)["retry-after-ms"] == wait
    assert (world.asked, fired) == ([], [f"429, retry after {wait} ms"])


@each_reply
def test_a_truncated_response_ends_early_and_says_so(wire: str, reply: Reply, cut: str) -> None:
    fired: list[str] = []
    said, _ = cross(fault(fired, "truncated_response", max_tokens=5), reply, wire)
    assert WORDS.startswith(said.text.rstrip())
    assert 0 < len(said.text.rstrip()) < len(WORDS)
    assert (said.finish, said.complete) == (cut, True)
    assert fired == ["cut after 5 tokens"]


@each_reply
def test_an_answer_short_enough_is_left_alone_and_nothing_fires(wire: str, reply: Reply, cut: str) -> None:
    fired: list[str] = []
    _, world = cross(fault(fired, "truncated_response", max_tokens=5000), reply, wire)
    untouched = b"".join(reply.body) if not isinstance(reply.body, bytes) else reply.body  # type: ignore[arg-type]
    assert world.read(fault(fired, "truncated_response", max_tokens=5000), llm_call(wire=wire))[1] == untouched
    assert fired == []


@each_reply
def test_an_empty_answer_says_nothing_and_ends_normally(wire: str, reply: Reply, cut: str) -> None:
    fired: list[str] = []
    said, _ = cross(fault(fired, "empty"), reply, wire)
    assert (said.text, said.tool_calls, said.complete) == ("", (), True)
    assert said.finish in ("stop", "end_turn")
    assert fired == ["answer left empty"]


@pytest.mark.parametrize("streamed", [False, True])
def test_an_empty_answer_asks_for_no_tool(streamed: bool) -> None:
    fired: list[str] = []
    said, _ = cross(fault(fired, "empty"), openai(None, streamed=streamed, tools=True), "openai_chat")
    assert (said.text, said.tool_calls, said.finish, fired) == ("", (), "stop", ["answer left empty"])


@each_reply
def test_garbage_is_noise_of_the_same_layout_from_the_seed(wire: str, reply: Reply, cut: str) -> None:
    fired: list[str] = []
    said, _ = cross(fault(fired, "garbage"), reply, wire)
    again, _ = cross(fault([], "garbage"), reply, wire)
    other, _ = cross(fault([], "garbage", seed=2), reply, wire)
    assert [len(word) for word in said.text.split()] == [len(word) for word in WORDS.split()]
    assert not set(said.text.split()) & {word for word in WORDS.split() if len(word) > 3}
    assert said.text == again.text != other.text
    assert said.complete
    assert fired == ["text replaced by noise"]


def test_garbage_leaves_tool_calls_alone_and_needs_words_to_fire() -> None:
    fired: list[str] = []
    said, _ = cross(fault(fired, "garbage"), openai(None, tools=True), "openai_chat")
    assert [(call.name, call.arguments) for call in said.tool_calls] == [("pay", '{"eur": 120}')]
    assert fired == []


@pytest.mark.parametrize("mode", ["truncated_response", "empty", "garbage"])
def test_an_error_the_provider_really_answered_with_is_left_alone(mode: str) -> None:
    fired: list[str] = []
    refusal = replace(openai(), status=500, body=b'{"error": {"message": "overloaded, please come back later"}}')
    world = World(refusal)
    _, body = world.read(fault(fired, mode), llm_call())
    assert (body, fired) == (refusal.body, [])


@pytest.mark.parametrize("mode", ["rate_limit", "truncated_response", "empty", "garbage"])
def test_what_no_wire_understands_passes_untouched(mode: str) -> None:
    world, fired = World(openai()), list[str]()
    assert world.cross(fault(fired, mode), llm_call(wire="")) is world.answer
    assert fired == []
