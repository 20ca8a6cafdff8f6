from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import orjson
import pytest

from flakestorm.core.call import Reply, header
from flakestorm.core.stream import pump, read
from flakestorm.wire.base import Edit, ToolCall
from flakestorm.wire.bedrock_chunks import edited_chunks
from flakestorm.wire.eventstream import MEDIA_TYPE, encode, messages
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.sse import events
from model_replies import PAY, WORDS, reply_of

ANTHROPIC: Any = wire_of("anthropic")
INVOKE: Any = wire_of("bedrock_invoke")
REFUSED = encode(b'{"message":"slow down"}', {":exception-type": "throttlingException", ":message-type": "exception"})
EDITS = {
    "truncated": Edit(max_tokens=3, finish="length"),
    "filtered": Edit(max_tokens=0, finish="content_filter"),
    "empty": Edit(text=lambda _: "", drop_tool_calls=True, finish="stop"),
    "upper": Edit(text=str.upper),
    "refusal": Edit(text=lambda _: "No.", drop_tool_calls=True, finish="refusal"),
    "calls": Edit(calls=lambda call: ToolCall(call.id, "other", call.arguments)),
}


def chunk(event: bytes) -> bytes:
    payload = orjson.dumps({"bytes": b64encode(event).decode(), "p": "abcdef"})
    return encode(payload, {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"})


def streamed(text: str | None = WORDS) -> list[bytes]:
    """The messages in which a model of Anthropic's says this, and asks for a tool."""
    said = b"".join(reply_of("anthropic", text, [PAY], stream=True).body)
    return [chunk(event.data) for event in events(said) if event.data is not None]


def reply(pieces: list[bytes]) -> Reply:
    return Reply(200, (("content-type", MEDIA_TYPE), ("x-amzn-requestid", "r1")), pieces)


def inside(body: bytes) -> list[Any]:
    """The events in a binary stream."""
    return [orjson.loads(b64decode(orjson.loads(data)["bytes"])) for kind, data in messages(body) if kind == "chunk"]


@pytest.mark.parametrize("text", [WORDS, None], ids=["text", "no text"])
@pytest.mark.parametrize("size", [None, 7, 1000], ids=["each", "small", "large"])
@pytest.mark.parametrize("name", EDITS)
def test_it_says_what_anthropic_s_own_stream_would_say(name: str, size: int | None, text: str | None) -> None:
    whole = b"".join(streamed(text))
    pieces = streamed(text) if size is None else [whole[at : at + size] for at in range(0, len(whole), size)]
    changed = INVOKE.edit(reply(pieces), EDITS[name])
    own = read(ANTHROPIC.edit(reply_of("anthropic", text, [PAY], stream=True), EDITS[name]))
    assert inside(read(changed)) == [orjson.loads(event.data) for event in events(own) if event.data is not None]
    assert header(changed.headers, "content-type") == MEDIA_TYPE
    assert header(changed.headers, "x-amzn-requestid") == "r1"


def test_what_says_what_it_said_goes_on_as_it_came() -> None:
    pieces = streamed()
    assert read(INVOKE.edit(reply(pieces), Edit(text=lambda text: text))) == b"".join(pieces)
    cut = read(INVOKE.edit(reply(pieces), EDITS["truncated"]))
    assert cut.startswith(b"".join(pieces[:3])), "up to the cut"


def test_a_message_goes_on_before_the_next_one_comes() -> None:
    came: list[str] = []

    def watched() -> Any:
        for piece in streamed():
            came.append("in")
            yield piece

    gone = INVOKE.edit(Reply(200, (("content-type", MEDIA_TYPE),), watched()), Edit(max_tokens=999))
    out = pump(gone, lambda _: None)
    assert next(out) == streamed()[0]
    assert came == ["in"]


@pytest.mark.parametrize("name", EDITS)
def test_a_stream_of_another_model_is_left_alone(name: str) -> None:
    pieces = [chunk(b'{"generation":"Hi"}'), encode(b"{}", {":event-type": "other"}), chunk(b"no json"), REFUSED, b"??"]
    assert read(INVOKE.edit(reply(pieces), EDITS[name])) == b"".join(pieces)


@pytest.mark.parametrize("name", ["upper", "truncated"])
def test_an_exception_in_the_middle_comes_where_it_came(name: str) -> None:
    body = read(INVOKE.edit(reply([*streamed()[:6], REFUSED]), EDITS[name]))
    assert body.endswith(REFUSED)
    assert INVOKE.said(body, stream=True).error == "slow down"


def test_what_is_no_binary_stream_is_not_touched() -> None:
    document = Reply(200, (("content-type", "application/json"),), b"{}")
    failed = Reply(429, (("content-type", MEDIA_TYPE),), b"{}")
    for other in (document, failed):
        assert edited_chunks(other, lambda own: own) is other
