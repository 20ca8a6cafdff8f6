"""OpenAI Responses, and the providers that speak it: Azure, OpenRouter, xAI, DeepSeek, LM Studio ...

Text is what the `output_text` parts of the messages say; reasoning and refusals are left out. Tools the agent runs are
`function_call` and `custom_tool_call`; those that OpenAI runs itself (web search, code interpreter, MCP ...) are left
out. The word for how it ended is the response's `status`.

Compaction (`/responses/compact`) asks a model too, and its answer is read the same way. It is state for later requests
and nothing that is said, so no edit changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.calls import remade
from flakestorm.wire.openai import OpenAI
from flakestorm.wire.openai_responses.calls import RESPONSES_CALLS
from flakestorm.wire.openai_responses.edit import ARGUMENTS, ENDS, is_text, rewrite_body
from flakestorm.wire.openai_responses.stream import ResponsesRewriter
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
from flakestorm.wire.sse import encode, events, looks_like_sse

__all__ = ["OpenAIResponses"]

_PATHS = ("/responses", "/responses/compact")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_TEXTS = ("input_text", "output_text", "text")


class OpenAIResponses(OpenAI):
    """The `openai_responses` wire. It holds no state; one object serves every run."""

    name = "openai_responses"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call is not one of this protocol. Reads the body once.

        A stored prompt may name the model in the request's place; the answer is then empty.
        """
        if call.method != "POST" or not call.url.partition("?")[0].rstrip("/").endswith(_PATHS):
            return None
        body = outline(call.body) or {}
        model, stored = string(body.get("model")), isinstance(body.get("prompt"), dict)
        continues = any(body.get(key) for key in ("previous_response_id", "conversation"))
        asks = isinstance(body.get("input"), str | list) or stored or continues
        return model if asks and (model or stored) else None

    def asked(self, body: bytes) -> Asked:
        """Read a request body. What `previous_response_id` stands for is not in it, so such results have no name."""
        doc = parse(body) or {}
        names: dict[str, str] = {}  # call id -> tool, to name the results, which only quote the id
        turns: list[Turn] = []
        if instructions := string(doc.get("instructions")):
            turns.append(Turn("system", instructions))
        if isinstance(doc.get("input"), str):
            turns.append(Turn("user", doc["input"]))
        for item in objects(doc.get("input")):
            kind = string(item.get("type"))
            last = turns[-1] if turns else Turn("")
            if kind in ARGUMENTS:
                call = _tool_call(item, "")
                names[call.id] = call.name
                if last.role == "assistant" and not last.tool_results:
                    turns[-1] = replace(last, tool_calls=(*last.tool_calls, call))
                else:
                    turns.append(Turn("assistant", tool_calls=(call,)))
            elif kind in _RESULTS:
                call_id = string(item.get("call_id"))
                result = ToolResult(call_id, names.get(call_id, ""), text_of(item.get("output"), _TEXTS))
                if last.role == "tool":
                    turns[-1] = replace(last, tool_results=(*last.tool_results, result))
                else:
                    turns.append(Turn("tool", tool_results=(result,)))
            elif kind == "message" or (not kind and "role" in item):
                turns.append(Turn(string(item.get("role")), text_of(item.get("content"), _TEXTS)))
        ours = [tool for tool in objects(doc.get("tools")) if tool.get("type") in ("function", "custom")]
        tools, parameters = offered((tool, tool.get("parameters")) for tool in ours)
        return Asked(string(doc.get("model")), doc.get("stream") is True, tuple(turns), tools, parameters)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body. An error answered as plain JSON to a streamed request is read as what it is."""
        return _said_stream(body) if looks_like_sse(body, stream=stream) else _said_whole(body)

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> bytes:
        """An event of type `error`; no other follows it."""
        error = self.error_object(failure, call)
        return encode(dump({"type": "error", "sequence_number": after, "error": error}), name="error")

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The reply with its meaning changed: see `openai_responses_edit`."""
        return remade(reply, edit, RESPONSES_CALLS, body=rewrite_body, events=ResponsesRewriter)


def _tool_call(item: Doc, streamed: str) -> ToolCall:
    arguments = streamed or string(item.get(ARGUMENTS[item["type"]]))
    return ToolCall(string(item.get("call_id")), string(item.get("name")), arguments)


def _error(doc: Doc) -> str | None:
    """The message of an error document or event."""
    return error_of(doc, "code") or (None if "output" in doc else bare_error(doc))


def _usage(doc: Doc) -> Usage | None:
    usage = obj(doc.get("usage"))
    return Usage(number(usage.get("input_tokens")), number(usage.get("output_tokens"))) if usage else None


def _said_whole(body: bytes) -> Said:
    doc = parse(body)
    if doc is None:
        return Said(complete=False)
    return _said(doc, [_Item(item) for item in objects(doc.get("output"))])


@dataclass(slots=True)
class _Item:
    """An output item: as it was stated last, and what its deltas said (a part's number -> pieces of its text)."""

    doc: Doc
    texts: dict[int, list[str]] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def text(self) -> str:
        """What a message says: its deltas, and of parts without any what it states itself."""
        if self.doc.get("type") != "message":
            return ""
        stated = {
            at: string(part.get("text")) for at, part in enumerate(objects(self.doc.get("content"))) if is_text(part)
        }
        spoken = {at: "".join(pieces) for at, pieces in self.texts.items()}
        return "".join(text for _, text in sorted({**stated, **spoken}.items()))


def _said(doc: Doc, items: list[_Item]) -> Said:
    return Said(
        text="".join(item.text() for item in items),
        tool_calls=tuple(
            _tool_call(item.doc, "".join(item.arguments)) for item in items if string(item.doc.get("type")) in ARGUMENTS
        ),
        finish=string(doc.get("status")) or None,
        usage=_usage(doc),
        model=string(doc.get("model")),
        error=_error(doc),
    )


def _said_stream(body: bytes) -> Said:
    items: dict[int, _Item] = {}
    loose: list[str] = []  # of deltas without an item, as some gateways send them
    last: Doc = {}
    model, error, complete = "", None, False
    for event in events(body):
        doc = {} if event.data is None else parse(event.data) or {}
        kind, index = string(doc.get("type")), number(doc.get("output_index")) or 0
        model = string(obj(doc.get("response")).get("model")) or model
        if kind == "response.output_item.added":
            items[index] = _Item(obj(doc.get("item")))
        elif kind == "response.output_item.done":
            items.setdefault(index, _Item({})).doc = obj(doc.get("item"))
        elif kind == "response.output_text.delta" and index in items:
            place = number(doc.get("content_index")) or 0
            items[index].texts.setdefault(place, []).append(string(doc.get("delta")))
        elif kind == "response.output_text.delta":
            loose.append(string(doc.get("delta")))
        elif kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            if index in items:
                items[index].arguments.append(string(doc.get("delta")))
        elif kind in ENDS:
            last, complete = obj(doc.get("response")), True
            break
        elif kind == "error" or event.name == "error" or (not kind and "error" in doc):
            error = error or _error(doc) or "error"
    stated = [item for _, item in sorted(items.items())] or [_Item(item) for item in objects(last.get("output"))]
    said = _said({**last, "output": []}, stated)
    text = said.text if stated else "".join(loose)
    return replace(said, text=text, model=model, error=error or said.error, complete=complete)
