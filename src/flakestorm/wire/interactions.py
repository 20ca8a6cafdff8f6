"""Gemini's Interactions: steps that the service may keep, in one protocol for models and for Google's own agents.

Such a call has the name of the model, or of the agent, that it asks; what was asked and said in it is read, whole and
streamed, and `edit` leaves it alone. Google's errors can be played on it like on any other model call.

Text is what the `model_output` steps say. Tools the agent runs are `function_call` steps; thoughts are left out, and so
are tools that Google runs itself (`google_search_call`, `mcp_server_tool_call` ...). The word for how it ended is the
interaction's `status`. Steps that `previous_interaction_id` stands for are not in a request.
"""

from __future__ import annotations

from collections.abc import Mapping

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.frames import Framer, sse_framing
from flakestorm.wire.provider_errors import google_error
from flakestorm.wire.shape import Doc, dump, items, number, obj, objects, offered, outline, parse, string, text_of
from flakestorm.wire.sse import events, looks_like_sse
from flakestorm.wire.unread import Unread

__all__ = ["Interactions"]

_CALL, _RESULT = "function_call", "function_result"


class Interactions(Unread):
    """The `interactions` wire. It holds no state; one object serves every run."""

    name = "interactions"

    def model_of(self, call: Call) -> str | None:
        """The model or agent this call asks, None if the call is not one of this protocol. Reads the body once."""
        if call.method != "POST" or not call.url.partition("?")[0].rstrip("/").endswith("/interactions"):
            return None
        body = outline(call.body) or {}
        asks = isinstance(body.get("input"), str | list | dict)
        return (string(body.get("model")) or string(body.get("agent")) or None) if asks else None

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST to `.../interactions` with an input for a model or an agent."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """Read a request body."""
        doc = parse(body) or {}
        names: dict[str, str] = {}  # call id -> tool, to name the results that only quote the id
        turns: list[Turn] = []
        if system := string(doc.get("system_instruction")):
            turns.append(Turn("system", system))
        given = doc.get("input")
        if isinstance(given, str):
            turns.append(Turn("user", given))
        steps = objects(given) if isinstance(given, list) else [obj(given)] if given else []
        for step in steps:
            kind = string(step.get("type"))
            if kind == _CALL:
                call = _tool_call(step, "")
                names[call.id] = call.name
                turns.append(Turn("assistant", "", (call,)))
            elif kind == _RESULT:
                turns.append(Turn("tool", "", (), (_tool_result(step, names),)))
            elif kind == "text":
                turns.append(Turn("user", string(step.get("text"))))
            elif "role" in step or kind in ("user_input", "model_output"):
                role = string(step.get("role")) or ("assistant" if kind == "model_output" else "user")
                turns.append(Turn("assistant" if role == "model" else role, text_of(step.get("content"))))
        functions = [tool for tool in objects(doc.get("tools")) if tool.get("type") == "function"]
        tools, parameters = offered((function, function.get("parameters")) for function in functions)
        model = string(doc.get("model")) or string(doc.get("agent"))
        return Asked(model, doc.get("stream") is True, tuple(turns), tools, parameters)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body. An error answered as plain JSON to a streamed request is read as what it is."""
        if looks_like_sse(body, stream=stream):
            return _said_stream(body)
        doc = parse(body)
        return Said(complete=False) if doc is None else _said(doc, [(step, "") for step in objects(doc.get("steps"))])

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error Google answers with."""
        return google_error(failure, model=self.model_of(call) or "this model", call=call)

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Events."""
        return sse_framing(start, media_type)


def _tool_call(step: Doc, streamed: str) -> ToolCall:
    arguments = streamed or dump(step.get("arguments") or {}).decode()
    return ToolCall(string(step.get("id")), string(step.get("name")), arguments)


def _tool_result(step: Doc, names: Mapping[str, str]) -> ToolResult:
    call_id, result = string(step.get("call_id")), step.get("result")
    text = text_of(result) if isinstance(result, str | list) else dump(result).decode() if result is not None else ""
    return ToolResult(call_id, string(step.get("name")) or names.get(call_id, ""), text)


def _said(interaction: Doc, steps: list[tuple[Doc, str]]) -> Said:
    """What an interaction says in these steps; each with what its deltas added to it: text, or JSON of arguments."""
    text = [text_of(step.get("content")) + added for step, added in steps if step.get("type") == "model_output"]
    usage = obj(interaction.get("usage"))
    counted = Usage(number(usage.get("total_input_tokens")), number(usage.get("total_output_tokens")))
    error = interaction.get("error")
    return Said(
        text="".join(text),
        tool_calls=tuple(_tool_call(step, added) for step, added in steps if step.get("type") == _CALL),
        finish=string(interaction.get("status")) or None,
        usage=counted if usage else None,
        model=string(interaction.get("model")) or string(interaction.get("agent")),
        error=(string(obj(error).get("message")) or dump(error).decode()) if error else None,
    )


def _said_stream(body: bytes) -> Said:
    interaction: Doc = {}
    steps: dict[int, tuple[Doc, list[str]]] = {}
    error, complete = None, False
    for event in events(body):
        doc = {} if event.data is None else parse(event.data) or {}
        kind, index = string(doc.get("event_type")), number(doc.get("index")) or 0
        if kind == "step.start":
            steps[index] = obj(doc.get("step")), []
        elif kind == "step.delta" and index in steps:
            steps[index][1].append(_added(steps[index][0], obj(doc.get("delta"))))
        elif kind.startswith("interaction."):
            interaction = {**interaction, **obj(doc.get("interaction"))}
            complete = complete or kind == "interaction.completed"
        if doc.get("error"):
            error = error or string(obj(doc["error"]).get("message")) or dump(doc["error"]).decode()
    stated = [(step, "".join(added)) for _, (step, added) in sorted(steps.items())]
    stated = stated or [(step, "") for step in items(interaction.get("steps")) if isinstance(step, dict)]
    said = _said(interaction if complete else {"model": interaction.get("model")}, stated)
    return Said(said.text, said.tool_calls, said.finish, said.usage, said.model, error or said.error, complete)


def _added(step: Doc, delta: Doc) -> str:
    if step.get("type") == "model_output" and delta.get("type") == "text":
        return string(delta.get("text"))
    if step.get("type") == _CALL and delta.get("type") == "arguments_delta":
        return string(delta.get("arguments"))
    return ""
