"""Amazon Bedrock: Converse, and everything that is invoked in a model's own protocol.

Converse is understood whole and streamed; its stream is a binary event stream (`eventstream`), changed message by
message (`bedrock_stream`). `invoke` carries the protocol of whichever model is behind it: Anthropic's is understood as
elsewhere, and its events, each in a binary message, are read and changed too (`bedrock_chunks`); any other such call
has its model's name and passes through unread. On all of them errors can be played, and streams can be slowed and cut.

The model is named in the path. Text is what the text blocks say; reasoning is left out, and so are tools that Amazon
runs itself (`server_tool_use`).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from flakestorm.core.call import Call, Reply, header
from flakestorm.wire.base import Asked, Edit, Failure, Finish, Said, ToolCall, ToolResult, Usage, Wire
from flakestorm.wire.bedrock_chunks import edited_chunks
from flakestorm.wire.bedrock_stream import ConverseRewriter, is_call, with_stream
from flakestorm.wire.blocks import turns_of
from flakestorm.wire.calls import remade
from flakestorm.wire.calls_snapshots import snapshot_calls
from flakestorm.wire.eventstream import MEDIA_TYPE, eventstream_framing, messages
from flakestorm.wire.frames import Framer
from flakestorm.wire.paths import model_in_path
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.provider_errors import aws_error, aws_error_message
from flakestorm.wire.shape import Doc, dump, items, number, obj, objects, offered, parse, string
from flakestorm.wire.snapshots import Part, limit_usage, rewrite_whole
from flakestorm.wire.sse import encode

__all__ = ["Bedrock", "BedrockInvoke", "ConverseAnswer", "ConverseAnswers"]

_WORDS: dict[Finish, str] = {
    "length": "max_tokens",
    "stop": "end_turn",
    "refusal": "end_turn",  # a refusal is text like any other
    "content_filter": "content_filtered",
}
_CONVERSE = re.compile(r"/model/([^/]+)/converse(?:-stream)?/?$")
_INVOKE = re.compile(r"/model/([^/]+)/invoke(?:-with-(?:bidirectional-|response-)?stream)?/?$")


class _Amazon:
    """How Amazon fails, and how its streams are framed."""

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The exception Amazon answers with."""
        return aws_error(failure, call=call)

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> bytes:
        """A message that holds an exception; no other follows it."""
        return aws_error_message(failure)

    def blocked(self, call: Call, message: str = "") -> None:
        """Nothing: what a guardrail does is said in the answer."""

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Messages of the binary event stream."""
        return eventstream_framing(start, media_type)


class Bedrock(_Amazon):
    """The `bedrock` wire, which is Converse. It holds no state; one object serves every run."""

    name = "bedrock"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call is not one of this protocol. Reads the body once."""
        return model_in_path(call, _CONVERSE, "messages", list)

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST to `/model/MODEL/converse` or `.../converse-stream` with messages in it."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """Read a request body. It states neither the model nor whether to stream: both are in the URL."""
        doc = parse(body) or {}
        turns = turns_of(doc, text=_text, calls=_tool_calls, results=_tool_results)
        specs = [obj(tool.get("toolSpec")) for tool in objects(obj(doc.get("toolConfig")).get("tools"))]
        tools, parameters = offered((spec, obj(spec.get("inputSchema")).get("json")) for spec in specs)
        return Asked(turns=turns, tools=tools, parameters=parameters)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body. An error answered as plain JSON to a streamed request is read as what it is."""
        doc = parse(body)
        if doc is None:
            return _said_stream(body) if stream or body.startswith(b"\0") else Said(complete=False)
        blocks = objects(obj(obj(doc.get("output")).get("message")).get("content"))
        usage = obj(doc.get("usage"))
        return Said(
            text=_text(blocks),
            tool_calls=_tool_calls(blocks),
            finish=string(doc.get("stopReason")) or None,
            usage=Usage(number(usage.get("inputTokens")), number(usage.get("outputTokens"))) if usage else None,
            error=None if "output" in doc else _error(doc),
        )

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The reply with its meaning changed: see `snapshots`, and of a stream `bedrock_stream`."""
        form = with_stream(snapshot_calls(ConverseAnswers()))
        return remade(
            reply,
            edit,
            form,
            body=partial(rewrite_whole, answers=ConverseAnswers()),
            events=partial(ConverseRewriter, words=_WORDS),
            announced_as=MEDIA_TYPE,
            framing=self.framing,
        )


class BedrockInvoke(_Amazon):
    """The `bedrock_invoke` wire: a named call whose bodies are in the model's own protocol."""

    name = "bedrock_invoke"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if it is not an invocation of Bedrock.

        The path alone would fit other services, so the host must be Bedrock's, or the signature made for it.
        """
        asked = _INVOKE.search(call.url.partition("?")[0]) if call.method == "POST" else None
        if asked is None:
            return None
        signed = "/bedrock/aws4_request" in (header(call.headers, "authorization") or "")
        return unquote(asked[1]) if signed or "bedrock" in urlsplit(call.url).netloc.lower() else None

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST to `/model/MODEL/invoke` or one of its streaming forms, at Bedrock."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """Read a request to one of Anthropic's models; of others nothing."""
        return _messages().asked(body) if "anthropic_version" in (parse(body) or {}) else Asked()

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read what one of Anthropic's models said; of others nothing but an error."""
        doc = parse(body)
        if doc is None:
            return _said_in_chunks(body)
        if doc.get("type") == "message":
            return _messages().said(body, stream=False)
        return Said(error=_error(doc) if doc.keys() == {"message"} else None)

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """A reply of one of Anthropic's models with its meaning changed; any other is left as it is.

        A stream is edited by way of Anthropic's own: see `bedrock_chunks`.
        """
        streamed = edited_chunks(reply, lambda own: _messages().edit(own, edit))
        return _messages().edit(reply, edit) if streamed is reply else streamed


def _messages() -> Wire:
    """Anthropic's protocol."""
    return cast(Wire, wire_of("anthropic"))


def _said_in_chunks(body: bytes) -> Said:
    """What a binary stream says whose messages hold the events of Anthropic's, if that is what they hold."""
    events: list[bytes] = []
    error: str | None = None
    for kind, payload in messages(body):
        doc = parse(payload) or {}
        if kind == "chunk":
            with suppress(ValueError):
                event = b64decode(string(doc.get("bytes")), validate=True)
                events.append(encode(event, name=string((parse(event) or {}).get("type"))))
        elif kind.endswith(("Exception", "Error")):
            error = error or _error(doc) or kind
    if not events or b"message_start" not in events[0]:
        return Said(error=error)
    said = _messages().said(b"".join(events), stream=True)
    return replace(said, error=said.error or error)


class ConverseAnswer:
    """The answer of Converse; see `snapshots.Answer`. Empty texts go, because the API refuses them in a history."""

    index = 0

    def __init__(self, doc: Doc) -> None:
        self._doc = doc
        self._message: Doc = doc["output"]["message"]

    @property
    def parts(self) -> list[Part]:
        """Its blocks, in order."""
        return [_part(block) for block in objects(self._message.get("content"))]

    def keep(self, parts: Sequence[Part]) -> None:
        """Leave only these blocks."""
        kept = {id(part.entry) for part in parts if part.kind != "text" or part.said}
        self._message["content"] = [block for block in items(self._message.get("content")) if id(block) in kept]

    def say(self, text: str) -> None:
        """Put in this text before the first tool call."""
        blocks: list[Any] = items(self._message.get("content"))
        calls = [at for at, block in enumerate(blocks) if is_call(obj(block))]
        place = calls[0] if calls else len(blocks)
        self._message["content"] = [*blocks[:place], {"text": text}, *blocks[place:]]

    @property
    def finish(self) -> str | None:
        """Its `stopReason`."""
        return string(self._doc.get("stopReason")) or None

    @finish.setter
    def finish(self, word: str) -> None:
        self._doc["stopReason"] = word


class ConverseAnswers:
    """The one answer of a Converse document; see `snapshots.Answers`."""

    words = _WORDS
    malformed = "malformed_tool_use"

    def __call__(self, doc: Doc) -> Sequence[ConverseAnswer]:
        """The answer in a document; none in an error."""
        return [ConverseAnswer(doc)] if isinstance(obj(doc.get("output")).get("message"), dict) else []

    def limit(self, doc: Doc, tokens: int) -> bool:
        """Count no more output tokens than this."""
        return limit_usage(obj(doc.get("usage")), "outputTokens", "totalTokens", tokens)


def _part(block: Doc) -> Part:
    if is_call(block):
        return Part("call", block, block["toolUse"], "input")
    return Part("text" if isinstance(block.get("text"), str) else "other", block, block, "text")


def _text(blocks: object) -> str:
    return "".join(string(block.get("text")) for block in objects(blocks))


def _tool_calls(blocks: list[Doc]) -> tuple[ToolCall, ...]:
    return tuple(_tool_call(block["toolUse"]) for block in blocks if is_call(block))


def _tool_call(use: Doc) -> ToolCall:
    return ToolCall(string(use.get("toolUseId")), string(use.get("name")), dump(use.get("input") or {}).decode())


def _tool_results(blocks: list[Doc], names: dict[str, str]) -> tuple[ToolResult, ...]:
    return tuple(_tool_result(obj(block["toolResult"]), names) for block in blocks if "toolResult" in block)


def _tool_result(result: Doc, names: dict[str, str]) -> ToolResult:
    call_id = string(result.get("toolUseId"))
    content = objects(result.get("content"))
    said = [string(part.get("text")) if "text" in part else dump(part.get("json")).decode() for part in content]
    return ToolResult(call_id, names.get(call_id, ""), "".join(said))


def _error(doc: Doc) -> str | None:
    return string(doc.get("message")) or string(doc.get("Message")) or None


def _said_stream(body: bytes) -> Said:
    text: list[str] = []
    calls: dict[int, tuple[Doc, list[str]]] = {}  # block -> how the call began, pieces of its input
    finish, usage, error = None, None, None
    for kind, payload in messages(body):
        doc = parse(payload) or {}
        index, delta = number(doc.get("contentBlockIndex")) or 0, obj(doc.get("delta"))
        begun = obj(doc.get("start"))
        if kind == "contentBlockStart" and is_call(begun):
            calls[index] = begun["toolUse"], []
        elif kind == "contentBlockDelta":
            text.append(string(delta.get("text")))
            if index in calls:
                calls[index][1].append(string(obj(delta.get("toolUse")).get("input")))
        elif kind == "messageStop":
            finish = string(doc.get("stopReason")) or None
        elif kind == "metadata":
            counted = obj(doc.get("usage"))
            usage = Usage(number(counted.get("inputTokens")), number(counted.get("outputTokens")))
        elif kind.endswith(("Exception", "Error")):
            error = error or _error(doc) or kind
    found = (
        ToolCall(string(use.get("toolUseId")), string(use.get("name")), "".join(pieces) or "{}")
        for use, pieces in calls.values()
    )
    return Said("".join(text), tuple(found), finish, usage, "", error, None not in (finish, usage))
