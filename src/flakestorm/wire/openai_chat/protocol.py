"""OpenAI Chat Completions, and the many providers that speak it: Azure, OpenRouter, Groq, Mistral, DeepSeek, vLLM ...

Dialects are read as the official SDK reads them. Text is what `content` says (in a list of parts: its text parts);
reasoning and refusals are left out. When several choices were asked for, the first is the reply.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.calls import remade
from flakestorm.wire.openai import OpenAI
from flakestorm.wire.openai_chat.calls import CHAT_CALLS
from flakestorm.wire.openai_chat.edit import ChatRewriter, rewrite_body
from flakestorm.wire.openai_chat.parts import Fragments, function_of, usages_of
from flakestorm.wire.shape import (
    Doc,
    bare_error,
    dump,
    error_of,
    number,
    obj,
    objects,
    offered,
    outline,
    parse,
    string,
    text_of,
)
from flakestorm.wire.sse import DONE, encode, events, looks_like_sse

__all__ = ["OpenAIChat"]

_AZURE = re.compile(r"/deployments/([^/]+)/chat/completions$")


class OpenAIChat(OpenAI):
    """The `openai_chat` wire. It holds no state; one object serves every run."""

    name = "openai_chat"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call is not one of this protocol. Reads the body once."""
        if call.method != "POST":
            return None
        path = call.url.partition("?")[0].rstrip("/")
        if not path.endswith("/chat/completions"):
            return None
        body = outline(call.body)
        if body is None or not isinstance(body.get("messages"), list):
            return None
        if model := string(body.get("model")):
            return model
        azure = _AZURE.search(path)
        return unquote(azure[1]) if azure else ""

    def asked(self, body: bytes) -> Asked:
        """Read a request body."""
        doc = parse(body) or {}
        names: dict[str, str] = {}  # call id -> tool, to name the results that only quote the id
        turns: list[Turn] = []
        for message in objects(doc.get("messages")):
            role, text = string(message.get("role")), text_of(message.get("content"))
            calls = _tool_calls(message)
            names.update((call.id, call.name) for call in calls)
            results: tuple[ToolResult, ...] = ()
            if role in ("tool", "function"):
                call_id = string(message.get("tool_call_id"))
                results = (ToolResult(call_id, string(message.get("name")) or names.get(call_id, ""), text),)
                text = ""
            turns.append(Turn(role, text, calls, results))
        functions = [function_of(tool)[0] for tool in objects(doc.get("tools"))] + objects(doc.get("functions"))
        tools, parameters = offered((function, function.get("parameters")) for function in functions)
        return Asked(string(doc.get("model")), doc.get("stream") is True, tuple(turns), tools, parameters)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body. An error answered as plain JSON to a streamed request is read as what it is."""
        return _said_stream(body) if looks_like_sse(body, stream=stream) else _said_whole(body)

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> bytes:
        """An event that holds an error; no other follows it."""
        return encode(dump({"error": self.error_object(failure, call)}))

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The reply with its meaning changed: see `openai_chat_edit`."""
        return remade(reply, edit, CHAT_CALLS, body=rewrite_body, events=ChatRewriter)


def _tool_calls(message: Doc) -> tuple[ToolCall, ...]:
    fragments = Fragments()
    fragments.add(message, streamed=False)
    return fragments.calls()


def _usage(doc: Doc) -> Usage | None:
    usage = next(iter(usages_of(doc)), None)
    if usage is None:
        return None
    return Usage(number(usage.get("prompt_tokens")), number(usage.get("completion_tokens")))


def _error(doc: Doc) -> str | None:
    """The message of an error document."""
    return error_of(doc, "type") or (None if "choices" in doc else bare_error(doc))


def _said_whole(body: bytes) -> Said:
    doc = parse(body)
    if doc is None:
        return Said(complete=False)
    choice = next(iter(objects(doc.get("choices"))), {})
    message = obj(choice.get("message"))
    return Said(
        text=text_of(message.get("content")),
        tool_calls=_tool_calls(message),
        finish=string(choice.get("finish_reason")) or None,
        usage=_usage(doc),
        model=string(doc.get("model")),
        error=_error(doc),
    )


def _said_stream(body: bytes) -> Said:
    text: list[str] = []
    fragments = Fragments()
    finish, usage, model, error, complete = None, None, "", None, False
    for event in events(body):
        if event.data is None:
            continue
        if event.data.startswith(DONE):
            complete = True
            break
        chunk = parse(event.data) or {}
        usage = _usage(chunk) or usage
        model = string(chunk.get("model")) or model
        error = error or _error(chunk)
        for choice in objects(chunk.get("choices")):
            if number(choice.get("index")) in (0, None):
                delta = obj(choice.get("delta"))
                text.append(text_of(delta.get("content")))
                fragments.add(delta, streamed=True)
                finish = string(choice.get("finish_reason")) or finish
    return Said("".join(text), fragments.calls(), finish, usage, model, error, complete)
