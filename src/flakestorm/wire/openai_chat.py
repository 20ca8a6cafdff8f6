"""OpenAI Chat Completions, and the many providers that speak it: Azure, OpenRouter, Groq, Mistral, DeepSeek, vLLM ...

Dialects are read as the official SDK reads them. Text is what `content` says (in a list of parts: its text parts);
reasoning and refusals are left out. When several choices were asked for, the first is the reply.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.editing import edited
from flakestorm.wire.failures import error_reply, request_token, retry_headers
from flakestorm.wire.openai_chat_edit import ChatRewriter, rewrite_body
from flakestorm.wire.openai_chat_parts import Fragments, content_text, function_of
from flakestorm.wire.shape import Doc, dump, number, obj, objects, parse, string
from flakestorm.wire.sse import DONE, events, looks_like_sse

__all__ = ["OpenAIChat"]

_AZURE = re.compile(r"/deployments/([^/]+)/chat/completions$")


class OpenAIChat:
    """The `openai_chat` wire. It holds no state; one object serves every run."""

    name = "openai_chat"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call is not one of this protocol. Reads the body once."""
        if call.method != "POST":
            return None
        path = call.url.partition("?")[0].rstrip("/")
        if not path.endswith("/chat/completions"):
            return None
        body = parse(call.body)
        if body is None or not isinstance(body.get("messages"), list):
            return None
        if model := string(body.get("model")):
            return model
        azure = _AZURE.search(path)
        return unquote(azure[1]) if azure else ""

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST to `.../chat/completions` with messages in it."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """Read a request body."""
        doc = parse(body) or {}
        names: dict[str, str] = {}  # call id -> tool, to name the results that only quote the id
        turns: list[Turn] = []
        for message in objects(doc.get("messages")):
            role, text = string(message.get("role")), content_text(message.get("content"))
            calls = _tool_calls(message)
            names.update((call.id, call.name) for call in calls)
            results: tuple[ToolResult, ...] = ()
            if role in ("tool", "function"):
                call_id = string(message.get("tool_call_id"))
                results = (ToolResult(call_id, string(message.get("name")) or names.get(call_id, ""), text),)
                text = ""
            turns.append(Turn(role, text, calls, results))
        tools = [string(function_of(tool)[0].get("name")) for tool in objects(doc.get("tools"))]
        tools += [string(function.get("name")) for function in objects(doc.get("functions"))]
        return Asked(
            string(doc.get("model")), doc.get("stream") is True, tuple(turns), tuple(name for name in tools if name)
        )

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body. An error answered as plain JSON to a streamed request is read as what it is."""
        return _said_stream(body) if looks_like_sse(body, stream=stream) else _said_whole(body)

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error OpenAI answers with. `timeout` is its front end's 504, the others its API's own."""
        usual_status, usual_message, kind, code = _FAILURES[failure.kind]
        wait = _go_duration(failure.retry_after_ms or 0)
        model = self.model_of(call) or "this model"
        message = failure.message or usual_message.format(model=model, wait=wait)
        headers = [("x-request-id", f"req_{request_token(call)}"), *retry_headers(failure.retry_after_ms)]
        if failure.kind == "rate_limit":
            headers += [
                ("x-ratelimit-limit-requests", "500"),
                ("x-ratelimit-limit-tokens", "30000"),
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-remaining-tokens", "29000"),
                ("x-ratelimit-reset-requests", wait),
                ("x-ratelimit-reset-tokens", "2s"),
            ]
        error = {"message": message, "type": kind, "param": None, "code": code}
        return error_reply(failure.status or usual_status, {"error": error}, *headers)

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The reply with its meaning changed: see `openai_chat_edit`."""
        return edited(
            reply,
            edit,
            body=lambda data, change: rewrite_body(data, edit, change),
            events=lambda change: ChatRewriter(edit, change),
        )


_FAILURES: dict[str, tuple[int, str, str, str | int | None]] = {
    # kind: status, message, type, code, as they were seen in the wild
    "rate_limit": (
        429,
        "Rate limit reached for {model} on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again "
        "in {wait}. Visit https://platform.openai.com/account/rate-limits to learn more.",
        "requests",
        "rate_limit_exceeded",
    ),
    "overloaded": (
        503,
        "Our servers are currently overloaded. Please try again later.",
        "service_unavailable_error",
        "server_is_overloaded",
    ),
    "server_error": (
        500,
        "The server had an error while processing your request. Sorry about that!",
        "server_error",
        None,
    ),
    "timeout": (504, "Gateway timeout.", "cf_gateway_timeout", 504),
}


def _go_duration(duration_ms: int) -> str:
    """Milliseconds as OpenAI writes durations: `50ms`, `1.5s`, `6m0s`."""
    if duration_ms < 1000:
        return f"{duration_ms}ms"
    minutes, rest_ms = divmod(duration_ms, 60_000)
    seconds = f"{rest_ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    return f"{minutes}m{seconds}" if minutes else seconds


def _tool_calls(message: Doc) -> tuple[ToolCall, ...]:
    fragments = Fragments()
    fragments.add(message, streamed=False)
    return fragments.calls()


def _usage(doc: Doc) -> Usage | None:
    usage = obj(doc.get("usage"))
    if not usage:
        return None
    return Usage(number(usage.get("prompt_tokens")), number(usage.get("completion_tokens")))


def _error(doc: Doc) -> str | None:
    """The message of an error document; gateways in front of a model leave the wrapping `error` out."""
    error = doc.get("error")
    if isinstance(error, dict):
        return string(error.get("message")) or string(error.get("type")) or dump(error).decode()
    if error:
        return string(error) or dump(error).decode()
    return None if "choices" in doc else string(doc.get("message")) or string(doc.get("detail")) or None


def _said_whole(body: bytes) -> Said:
    doc = parse(body)
    if doc is None:
        return Said(complete=False)
    choice = next(iter(objects(doc.get("choices"))), {})
    message = obj(choice.get("message"))
    return Said(
        text=content_text(message.get("content")),
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
                text.append(content_text(delta.get("content")))
                fragments.add(delta, streamed=True)
                finish = string(choice.get("finish_reason")) or finish
    return Said("".join(text), fragments.calls(), finish, usage, model, error, complete)
