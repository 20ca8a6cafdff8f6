from __future__ import annotations

from dataclasses import replace

import pytest

from faults_support import World, llm_fault
from flakestorm.core.call import Reply
from flakestorm.faults.base import llm_faults
from flakestorm.wire.base import Said
from flakestorm.wire.protocols import wire_of
from model_replies import PAY, WIRES, WORDS, call_of, reply_of

MODES = ("truncated_response", "empty", "garbage", "refusal", "content_filter")
FORMS = [(wire, stream) for wire in WIRES for stream in (False, True)]
"""Every wire, whole and streamed."""
each = pytest.mark.parametrize(
    ("wire", "stream"), FORMS, ids=lambda v: v if isinstance(v, str) else ("", "streamed")[v]
)
FINISH = {
    "openai_chat": {"stop": "stop", "length": "length", "filtered": "content_filter", "refused": "stop"},
    "openai_responses": {"stop": "completed", "length": "incomplete", "filtered": "incomplete", "refused": "completed"},
    "anthropic": {"stop": "end_turn", "length": "max_tokens", "filtered": "refusal", "refused": "refusal"},
    "gemini": {"stop": "STOP", "length": "MAX_TOKENS", "filtered": "SAFETY", "refused": "STOP"},
    "ollama": {"stop": "stop", "length": "length", "filtered": "stop", "refused": "stop"},
    "bedrock": {"stop": "end_turn", "length": "max_tokens", "filtered": "content_filtered", "refused": "end_turn"},
}


def cross(fired: list[str], mode: str, wire: str, reply: Reply, **settings: object) -> tuple[Said, bytes]:
    """What the agent is told, and the bytes of it."""
    _, body = World(reply).read(llm_fault(fired, mode, **settings), call_of(wire, stream=reply.streamed))
    spoken = wire_of(wire)
    assert spoken is not None
    return spoken.said(body, stream=reply.streamed), body


def untouched(reply: Reply) -> bytes:
    return reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)  # type: ignore[arg-type]


def test_every_mode_is_registered() -> None:
    assert set(MODES) <= set(llm_faults)


@each
def test_a_truncated_response_ends_early_and_says_so(wire: str, stream: bool) -> None:
    fired: list[str] = []
    said, _ = cross(fired, "truncated_response", wire, reply_of(wire, stream=stream), max_tokens=5)
    assert WORDS.startswith(said.text.rstrip())
    assert 0 < len(said.text.rstrip()) < len(WORDS)
    assert (said.finish, said.complete) == (FINISH[wire]["length"], True)
    assert fired == ["cut after 5 tokens"]


@each
def test_an_answer_short_enough_is_left_alone_and_nothing_fires(wire: str, stream: bool) -> None:
    fired, reply = list[str](), reply_of(wire, stream=stream)
    _, body = cross(fired, "truncated_response", wire, reply, max_tokens=5000)
    assert (body, fired) == (untouched(reply), [])


@each
@pytest.mark.parametrize("text", [WORDS, None])
def test_an_empty_answer_says_nothing_asks_for_no_tool_and_ends_normally(
    wire: str, stream: bool, text: str | None
) -> None:
    fired: list[str] = []
    said, _ = cross(fired, "empty", wire, reply_of(wire, text, [PAY], stream=stream))
    assert (said.text, said.tool_calls, said.complete) == ("", (), True)
    assert said.finish == FINISH[wire]["stop"]
    assert fired == ["answer left empty"]


@each
def test_garbage_is_noise_of_the_same_layout_from_the_seed(wire: str, stream: bool) -> None:
    fired, reply = list[str](), reply_of(wire, calls=[PAY], stream=stream)
    said, _ = cross(fired, "garbage", wire, reply)
    again, _ = cross([], "garbage", wire, reply)
    other, _ = cross([], "garbage", wire, reply, seed=2)
    assert [len(word) for word in said.text.split()] == [len(word) for word in WORDS.split()]
    assert not set(said.text.split()) & {word for word in WORDS.split() if len(word) > 3}
    assert said.text == again.text != other.text
    assert [call.name for call in said.tool_calls] == ["pay"]
    assert said.complete
    assert fired == ["text replaced by noise"]


@each
def test_garbage_needs_words_to_fire(wire: str, stream: bool) -> None:
    fired, reply = list[str](), reply_of(wire, None, [PAY], stream=stream)
    _, body = cross(fired, "garbage", wire, reply)
    assert (body, fired) == (untouched(reply), [])


@each
@pytest.mark.parametrize("text", [WORDS, None])
def test_a_refusal_stands_where_the_provider_has_refusals(wire: str, stream: bool, text: str | None) -> None:
    fired: list[str] = []
    said, body = cross(
        fired, "refusal", wire, reply_of(wire, text, [PAY], stream=stream), message="I would rather not."
    )
    apart = wire in ("openai_chat", "openai_responses")
    assert said.text == ("" if apart else "I would rather not.")
    assert (b'"refusal":"I' in body or b"response.refusal.delta" in body) is apart
    assert (said.tool_calls, said.finish, said.complete) == ((), FINISH[wire]["refused"], True)
    assert fired == ["the model refuses"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_refusal_is_text_where_messages_have_no_other_place_for_it(stream: bool) -> None:
    reply, fired = reply_of("openai_chat", WORDS, [PAY], stream=stream), list[str]()
    call = call_of("openai_chat", stream=stream, url="https://api.groq.com/openai/v1/chat/completions")
    _, body = World(reply).read(llm_fault(fired, "refusal", message="I would rather not."), call)
    spoken = wire_of("openai_chat")
    assert spoken is not None
    said = spoken.said(body, stream=stream)
    assert (said.text, said.tool_calls, said.finish) == ("I would rather not.", (), "stop")
    assert b'"refusal":"I' not in body
    assert fired == ["the model refuses"]


@each
def test_a_filtered_answer_is_cut_and_says_so(wire: str, stream: bool) -> None:
    fired, reply = list[str](), reply_of(wire, calls=[PAY], stream=stream)
    said, body = cross(fired, "content_filter", wire, reply)
    if wire == "ollama":  # it has no filter
        assert (body, fired) == (untouched(reply), [])
        return
    assert (said.text, said.tool_calls, said.finish, said.complete) == ("", (), FINISH[wire]["filtered"], True)
    assert fired == ["answer filtered after 0 tokens"]
    if wire == "openai_responses":
        assert b'"incomplete_details":{"reason":"content_filter"}' in body


@each
def test_a_filter_may_step_in_later(wire: str, stream: bool) -> None:
    if wire == "ollama":
        return
    fired: list[str] = []
    said, _ = cross(fired, "content_filter", wire, reply_of(wire, stream=stream), max_tokens=4)
    assert said.text
    assert WORDS.startswith(said.text)
    assert (said.finish, fired) == (FINISH[wire]["filtered"], ["answer filtered after 4 tokens"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_filtered_prompt_never_reaches_the_model(wire: str, stream: bool) -> None:
    world, fired = World(reply_of(wire, stream=stream)), list[str]()
    reply, body = world.read(llm_fault(fired, "content_filter", form="prompt"), call_of(wire, stream=stream))
    if wire in ("ollama", "bedrock"):
        assert (len(world.asked), fired, body) == (1, [], untouched(world.answer))  # type: ignore[arg-type]
        return
    assert (world.asked, fired) == ([], ["prompt stopped by the content filter"])
    if wire == "gemini":
        assert reply.streamed is stream
        assert (reply.status, b'"blockReason":"PROHIBITED_CONTENT"' in body) == (200, True)
    else:
        assert (reply.status, b'"invalid_request_error"' in body) == (400, True)


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses"])
def test_at_azure_the_prompt_is_filtered_unless_the_answer_is_asked_for(wire: str) -> None:
    url = "https://mine.openai.azure.com/openai/v1/" + (
        "responses" if wire == "openai_responses" else "chat/completions"
    )
    world, fired = World(reply_of(wire)), list[str]()
    reply, body = world.read(llm_fault(fired, "content_filter"), call_of(wire, url=url))
    assert (reply.status, b'"ResponsibleAIPolicyViolation"' in body, world.asked) == (400, True, [])
    reply, _ = world.read(llm_fault(fired, "content_filter", form="answer"), call_of(wire, url=url))
    assert (reply.status, len(world.asked)) == (200, 1)
    assert fired == ["prompt stopped by the content filter", "answer filtered after 0 tokens"]


@pytest.mark.parametrize("mode", MODES)
def test_an_error_the_provider_really_answered_with_is_left_alone(mode: str) -> None:
    fired: list[str] = []
    failed = replace(reply_of("openai_chat"), status=500, body=b'{"error": {"message": "please come back later"}}')
    _, body = cross(fired, mode, "openai_chat", failed)
    assert (body, fired) == (failed.body, [])


@pytest.mark.parametrize("mode", MODES)
def test_what_no_wire_understands_passes_untouched(mode: str) -> None:
    world, fired = World(reply_of("openai_chat")), list[str]()
    assert world.cross(llm_fault(fired, mode), replace(call_of("openai_chat"), wire="")) is world.answer
    assert fired == []
