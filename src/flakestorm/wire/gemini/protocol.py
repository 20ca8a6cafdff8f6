"""Gemini: `generateContent` and `streamGenerateContent`, of Google AI and of Vertex AI.

The model is named in the path. A stream is events where the client asked for them (`alt=sse`, as every SDK does), else
one JSON array that grows. Field names come as Google documents them, or in the snake case that its servers take too.

Text is what the text parts say, thoughts left out; so are tools that Google runs itself (`executableCode`, `toolCall`).
A stream has no end marker: it is complete when the first candidate has said why it finished, or the prompt was blocked;
an array only when it is closed as well. When several candidates were asked for, the first is the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.calls import remade
from flakestorm.wire.calls_snapshots import snapshot_calls
from flakestorm.wire.failures import error_reply, request_token
from flakestorm.wire.frames import Elements, Framer, frames, sse_framing
from flakestorm.wire.gemini.parts import CallPieces, GeminiAnswers, content_text
from flakestorm.wire.paths import model_in_path
from flakestorm.wire.provider_errors import google_error, google_error_object
from flakestorm.wire.shape import Doc, dump, error_of, number, obj, objects, offered, parse, string
from flakestorm.wire.snapshots import SnapshotRewriter, rewrite_whole
from flakestorm.wire.sse import encode

__all__ = ["Gemini"]

_PATH = re.compile(r"/(?:models|tunedModels|endpoints)/([^/]+):(generateContent|streamGenerateContent)/?$")


class Gemini:
    """The `gemini` wire. It holds no state; one object serves every run."""

    name = "gemini"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call is not one of this protocol. Reads the body once."""
        return model_in_path(call, _PATH, "contents", list, dict, str)

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST to `.../models/MODEL:[stream]GenerateContent` with contents in it."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """Read a request body. It states neither the model nor whether to stream: both are in the URL."""
        doc = parse(body) or {}
        turns: list[Turn] = []
        if system := content_text(_either(doc, "systemInstruction", "system_instruction")):
            turns.append(Turn("system", system))
        contents = doc.get("contents")
        for content in objects(contents) if isinstance(contents, list) else [obj(contents)]:
            parts = objects(content.get("parts"))
            calls = tuple(
                _tool_call(call) for part in parts if (call := _either(part, "functionCall", "function_call"))
            )
            results = [_either(part, "functionResponse", "function_response") for part in parts]
            turns.append(
                Turn(
                    string(content.get("role")) or "user",
                    content_text(content),
                    calls,
                    tuple(_tool_result(result) for result in results if result),
                )
            )
        declared = [
            function
            for tool in objects(doc.get("tools"))
            for key in ("functionDeclarations", "function_declarations")
            for function in objects(tool.get(key))
        ]
        schemas = ("parameters", "parametersJsonSchema", "parameters_json_schema")
        tools, parameters = offered(
            (function, next((function[key] for key in schemas if function.get(key)), None)) for function in declared
        )
        return Asked(turns=tuple(turns), tools=tools, parameters=parameters)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body: a document, an array of them, or a stream of events."""
        framer = self.framing(body[:64], "text/event-stream" if stream else "")
        if framer is None:
            doc = parse(body)
            return Said(complete=False) if doc is None else _said([doc], ended=True)
        docs = [parse(frame.data) or {} for frame in frames(framer, body) if frame.data is not None]
        said = _said(docs, ended=False)
        return replace(said, complete=False) if isinstance(framer, Elements) and not framer.closed else said

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error Google answers with: a `google.rpc.Status`, in an array where the answer would be one."""
        listed = _streams(call) == "array"
        return google_error(failure, model=self.model_of(call) or "this model", call=call, listed=listed)

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> bytes | None:
        """An event that holds an error; no other follows it. Nobody has seen what Google does in an array."""
        if _streams(call) != "events":
            return None
        return encode(dump({"error": google_error_object(failure, model=self.model_of(call) or "this model")}))

    def blocked(self, call: Call, message: str = "") -> Reply:
        """A reply without candidates, whose `promptFeedback` says that the prompt was blocked and why."""
        feedback = {"blockReason": "PROHIBITED_CONTENT", **({"blockReasonMessage": message} if message else {})}
        usage = {"promptTokenCount": 8, "totalTokenCount": 8}
        document: Doc = {
            "promptFeedback": feedback,
            "usageMetadata": usage,
            "modelVersion": self.model_of(call) or "",
            "responseId": request_token(call)[:22],
        }
        form = _streams(call)
        if form != "events":
            return error_reply(200, [document] if form == "array" else document)
        return Reply(200, (("content-type", "text/event-stream"),), encode(dump(document)), reason="OK")

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Events, or the elements of an array."""
        return Elements() if start.lstrip().startswith(b"[") else sse_framing(start, media_type)

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The reply with its meaning changed: see `snapshots`."""
        return remade(
            reply,
            edit,
            snapshot_calls(GeminiAnswers()),
            body=partial(rewrite_whole, answers=GeminiAnswers()),
            events=partial(SnapshotRewriter, answers=GeminiAnswers()),
            framing=self.framing,
        )


def _streams(call: Call) -> Literal["", "events", "array"]:
    """In which form the answer to this call is streamed; empty where it comes whole."""
    url = urlsplit(call.url)
    if "streamGenerateContent" not in url.path:
        return ""
    return "events" if "alt=sse" in url.query else "array"


def _either(doc: Doc, camel: str, snake: str) -> Doc:
    """The object under one of a field's two names."""
    return obj(doc.get(camel) or doc.get(snake))


def _tool_call(call: Doc) -> ToolCall:
    return ToolCall(string(call.get("id")), string(call.get("name")), dump(call.get("args") or {}).decode())


def _tool_result(result: Doc) -> ToolResult:
    """Ids are optional; the result of a function is known by its name."""
    return ToolResult(string(result.get("id")), string(result.get("name")), dump(result.get("response")).decode())


def _said(docs: Sequence[Doc], *, ended: bool) -> Said:
    """What these documents say together."""
    text: list[str] = []
    calls = CallPieces()
    finish, usage, model, error = None, Usage(), "", None
    for doc in docs:
        model = string(doc.get("modelVersion")) or model
        counted = obj(doc.get("usageMetadata"))
        fresh = number(counted.get("promptTokenCount")), number(counted.get("candidatesTokenCount"))
        usage = Usage(
            *(old if new is None else new for new, old in zip(fresh, (usage.input, usage.output), strict=True))
        )
        error = error or error_of(doc, "status")
        ended = ended or bool(obj(doc.get("promptFeedback")).get("blockReason"))
        for candidate in objects(doc.get("candidates")):
            if number(candidate.get("index")) in (0, None):
                content = obj(candidate.get("content"))
                text.append(content_text(content))
                calls.add(content)
                finish = string(candidate.get("finishReason")) or finish
    stated = usage if usage != Usage() else None
    return Said("".join(text), calls.calls(), finish, stated, model, error, ended or finish is not None)
