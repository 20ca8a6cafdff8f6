"""Answers in protocols that are read and not changed: OpenAI's legacy completions, and Cohere's chat.

Such a call is known for what it is and has its model's name, so schedules, counts and sites speak of it; what was asked
and said in it is read, whole and streamed, and `edit` leaves it alone. The provider's errors can be played on it like
on any other model call.

Text is what Cohere's `text` blocks say, thinking and the plan before a tool call left out. Its first version streams a
document per line, and its last event repeats the whole answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.cohere_results import result_text
from flakestorm.wire.failures import error_reply, retry_headers
from flakestorm.wire.frames import Framer, Lines, frames, sse_framing
from flakestorm.wire.paths import path_of
from flakestorm.wire.provider_errors import openai_error
from flakestorm.wire.shape import Doc, dump, number, obj, objects, offered, outline, parse, string, text_of
from flakestorm.wire.sse import DONE, events, looks_like_sse
from flakestorm.wire.unread import Unread

__all__ = ["Completions"]

_LEGACY = re.compile(r"(?<!/chat)/completions$")
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/completions$")
_COHERE = re.compile(r"/v[12]/chat$")
_COHERE_FAILURES = {
    "rate_limit": (429, "You are past the per minute request limit, please wait and try again later."),
    "overloaded": (503, "service unavailable, please try again later"),
    "server_error": (500, "internal server error, this has been reported to our developers"),
}


class Completions(Unread):
    """The `completions` wire. It holds no state; one object serves every run."""

    name = "completions"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if it is not one of these protocols. Reads the body once at most."""
        path = path_of(call) if call.method == "POST" else ""
        legacy = _LEGACY.search(path)
        if not legacy and not _COHERE.search(path):
            return None
        body = outline(call.body) or {}
        if not (body.get("prompt") if legacy else body.get("messages") or body.get("message")):
            return None
        deployed = _DEPLOYMENT.search(path)
        return string(body.get("model")) or (unquote(deployed[1]) if deployed else None)

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST of a prompt to `.../completions`, or of messages to `/v1/chat` or `/v2/chat`."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """Read a request body. Of several prompts each is a turn; Cohere's first version has its history apart."""
        doc = parse(body) or {}
        names: dict[str, str] = {}  # call id -> tool, to name the results, which only quote the id
        turns: list[Turn] = []
        prompts = doc.get("prompt")
        for said in prompts if isinstance(prompts, list) else [prompts]:
            turns += [Turn("user", said)] if isinstance(said, str) else []
        for old in objects(doc.get("chat_history")):
            turns.append(Turn(string(old.get("role")).lower(), string(old.get("message"))))
        if now := string(doc.get("message")):
            turns.append(Turn("user", now))
        for message in objects(doc.get("messages")):
            role, text, calls = string(message.get("role")), text_of(message.get("content")), _calls(message)
            names.update((call.id, call.name) for call in calls)
            call_id = string(message.get("tool_call_id"))
            told = result_text(message.get("content"))
            results = (ToolResult(call_id, names.get(call_id, ""), told),) if role == "tool" else ()
            turns.append(Turn(role, "" if results else text, calls, results))
        functions = [obj(tool.get("function")) or tool for tool in objects(doc.get("tools"))]
        tools, parameters = offered((function, function.get("parameters")) for function in functions)
        return Asked(string(doc.get("model")), doc.get("stream") is True, tuple(turns), tools, parameters)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body. An error answered as plain JSON to a streamed request is read as what it is."""
        if looks_like_sse(body, stream=stream):
            data = [event.data for event in events(body) if event.data is not None]
            return _said([parse(each) or {} for each in data], ended=any(each.startswith(DONE) for each in data))
        doc = parse(body)
        if doc is not None:
            return _said([doc], ended="event_type" not in doc)
        lines = [parse(line.data) or {} for line in frames(Lines(), body) if line.data is not None]
        return _said(lines, ended=False)

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error of the provider whose path this is."""
        if not _COHERE.search(path_of(call)):
            return openai_error(failure, model=self.model_of(call) or "this model", call=call)
        status, message = _COHERE_FAILURES.get(failure.kind, _COHERE_FAILURES["server_error"])
        said = {"message": failure.message or message}
        return error_reply(failure.status or status, said, *retry_headers(failure.retry_after_ms))

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Events; the lines of Cohere's first version pass as they are."""
        return sse_framing(start, media_type)


def _error(doc: Doc) -> str | None:
    if said := string(obj(doc.get("error")).get("message")):
        return said
    return string(doc.get("message")) or None if doc.keys() <= {"message", "id"} else None


def _calls(message: Doc) -> tuple[ToolCall, ...]:
    """Cohere's tool calls: of its second version, or, without ids, of its first."""
    return tuple(_call(call) for call in objects(message.get("tool_calls")))


def _call(call: Doc) -> ToolCall:
    function = obj(call.get("function")) or call
    given = function.get("arguments", function.get("parameters"))
    arguments = given if isinstance(given, str) else dump(given or {}).decode()
    return ToolCall(string(call.get("id")), string(function.get("name")), arguments)


def _usage(doc: Doc) -> Usage | None:
    """What was counted, not what was billed, where Cohere states both."""
    stated = obj(doc.get("usage")) or obj(doc.get("meta"))
    counted = obj(stated.get("tokens")) or obj(stated.get("billed_units")) or stated
    found = [
        next((count for key in keys if (count := number(_whole(counted.get(key)))) is not None), None)
        for keys in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
    ]
    return Usage(*found) if found != [None, None] else None


def _whole(count: object) -> object:
    return int(count) if isinstance(count, float) and count.is_integer() else count  # Cohere's are `12.0` at times


def _said(docs: Iterable[Doc], *, ended: bool) -> Said:
    """What these documents say together: the whole answer, or the events of a stream."""
    text: list[str] = []
    calls: dict[object, ToolCall] = {}
    finish, usage, model, error = None, None, "", None
    for doc in docs:
        kind = string(doc.get("type")) or string(doc.get("event_type"))
        if kind == "stream-end":  # of Cohere's first version
            doc, text, ended = {**obj(doc.get("response")), "finish_reason": doc.get("finish_reason")}, [], True
            calls.clear()
        ended = ended or kind == "message-end"
        delta = obj(doc.get("delta"))
        message = obj(delta.get("message")) or obj(doc.get("message"))
        text += _texts(doc, message)
        for place, call in _placed(doc, message):
            before = calls.get(place, ToolCall("", "", ""))
            calls[place] = ToolCall(before.id or call.id, before.name or call.name, before.arguments + call.arguments)
        of = {**doc, **delta}
        first = next((c for c in objects(doc.get("choices")) if number(c.get("index")) in (0, None)), {})
        finish = string(of.get("finish_reason")) or string(first.get("finish_reason")) or finish
        usage = _usage(of) or usage
        model = string(doc.get("model")) or model
        error = error or _error(doc)
    return Said("".join(text), tuple(calls.values()), finish, usage, model, error, ended)


def _texts(doc: Doc, message: Doc) -> Iterator[str]:
    yield string(doc.get("text"))  # of Cohere's first version
    content = message.get("content")
    if not isinstance(content, dict):
        yield text_of(content)
    else:  # a piece of a block, which names its type only when it begins
        yield string(content.get("text"))
    for choice in objects(doc.get("choices")):
        if number(choice.get("index")) in (0, None):
            yield string(choice.get("text"))


def _placed(doc: Doc, message: Doc) -> Iterator[tuple[object, ToolCall]]:
    """Tool calls, or the pieces of one, and which of them it is."""
    piece = message.get("tool_calls")
    if isinstance(piece, dict):
        function = obj(piece.get("function"))
        said = string(function.get("arguments"))
        yield number(doc.get("index")) or 0, ToolCall(string(piece.get("id")), string(function.get("name")), said)
        return
    for place, call in enumerate((*_calls(message), *_calls(doc))):
        yield ("whole", place), call
