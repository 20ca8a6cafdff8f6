"""Conversations as tracing tools write them, read into one form: the messages of OpenAI's Chat Completions.

Every instrumentation has its own spelling of who said what: messages with parts, blocks or plain text, items of the
Responses API, Gemini's contents, LangChain's constructors, OpenInference's nested fields, lists within lists. All of
them are read alike; what is none of them gives nothing, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flakestorm.wire.mcp.result import ABSENT, read_json

__all__ = ["Doc", "as_text", "conversation", "counted", "declared", "parsed", "tool_said", "unflattened"]

Doc = dict[str, Any]

_ROLES = {
    "ai": "assistant", "aimessage": "assistant", "aimessagechunk": "assistant", "assistant": "assistant",
    "chatmessage": "user", "developer": "system", "function": "tool", "functionmessage": "tool", "human": "user",
    "humanmessage": "user", "model": "assistant", "system": "system", "systemmessage": "system", "tool": "tool",
    "toolmessage": "tool", "user": "user",
}  # fmt: skip
_WITHIN = (
    "messages",
    "choices",
    "generations",
    "candidates",
    "contents",
    "output",
    "input",
    "prompts",
    "prompt",
    "args",
)
"""Where a document keeps its messages, the surest first."""
_SYSTEM = ("system", "system_instruction", "systemInstruction", "instructions")
_ANSWERS = ("tool_use_id", "id", "toolCallId", "toolUseId", "call_id")
_DEPTH = 12
_TOLD = ("prompt_tokens", "input_tokens", "promptTokenCount", "prompt_token_count")
_MADE = ("completion_tokens", "output_tokens", "candidatesTokenCount", "candidates_token_count")


def conversation(value: Any, *, role: str = "user") -> list[Doc]:
    """The messages in a value of any known form, in order; none where it is of no known form.

    Args:
        value: what a trace holds as a model's input or output; JSON text is read.
        role: whose words a bare text is.
    """
    try:
        return _answered(list(_messages(parsed(value), role, 0)))
    except RecursionError:  # nested deeper than anybody talks
        return []


def parsed(value: Any) -> Any:
    """The JSON document a text is, also where it was written twice over; any other value as it is."""
    for _ in range(3):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        document = read_json(value)
        if document is ABSENT:
            return value
        value = document
    return value


def as_text(value: Any) -> str:
    """A value as a tool would have said it to a model."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def declared(value: Any) -> list[Doc]:
    """The tools on offer that a trace keeps with what the model was told.

    They stand beside the messages, as in a request; or among them, where LangChain's handlers put them.
    """
    document = parsed(value)
    if isinstance(document, dict):
        config = document["config"] if isinstance(document.get("config"), dict) else {}
        listed = [tool for tool in _listed(document.get("tools") or config.get("tools")) if isinstance(tool, dict)]
        return [one for tool in listed for one in _listed(tool.get("function_declarations")) or [tool]]
    contents = [parsed(item.get("content")) for item in _listed(document) if isinstance(item, dict)]
    return [content for content in contents if isinstance(content, dict) and _declares(content)]


def tool_said(value: Any) -> Any:
    """What a tool said: of a message of LangChain's that carries it, the content; any other value as it is."""
    inner = value.get("kwargs", value) if isinstance(value, dict) else value
    if isinstance(inner, dict) and "content" in inner and ("tool_call_id" in inner or inner.get("type") == "tool"):
        return inner["content"]
    return value


def counted(value: Any) -> tuple[Any, Any]:
    """Tokens in and out, as what a model answered states them itself; None for what it does not state."""
    document = parsed(value)
    for name in ("usage", "usage_metadata", "usageMetadata"):
        said = document.get(name) if isinstance(document, dict) else None
        if isinstance(said, dict) and said:
            found = [next((said[key] for key in keys if said.get(key) is not None), None) for keys in (_TOLD, _MADE)]
            return found[0], found[1]
    return None, None


def unflattened(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """A list that was flattened into dotted names: `PREFIX.0.message.role` and so on, in order of its indexes."""
    root: Doc = {}
    for name, value in attributes.items():
        if not name.startswith(f"{prefix}."):
            continue
        at = root
        *steps, last = name[len(prefix) + 1 :].split(".")
        for step in steps:
            inner = at.setdefault(step, {})
            at = inner if isinstance(inner, dict) else {}
        at[last] = value
    found = _lists(root)
    return found if isinstance(found, list) else []


def _lists(value: Any) -> Any:
    """Mappings whose keys are all numbers as lists."""
    if not isinstance(value, dict):
        return value
    inner = {key: _lists(item) for key, item in value.items()}
    if inner and all(key.isdecimal() for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def _messages(value: Any, role: str, depth: int) -> Iterator[Doc]:
    if depth > _DEPTH or value is None:
        return
    if isinstance(value, str):
        if value.strip():
            yield {"role": role, "content": value}
    elif isinstance(value, list):
        for item in value:
            yield from _messages(item, role, depth + 1)
    elif isinstance(value, dict):
        yield from _from_document(value, role, depth)


def _from_document(document: Doc, role: str, depth: int) -> Iterator[Doc]:
    if isinstance(document.get("message"), (dict, list)):  # a choice, a generation, OpenInference's nesting
        for message in _messages(document["message"], role, depth + 1):
            info = document.get("generation_info")
            finish = document.get("finish_reason") or (info.get("finish_reason") if isinstance(info, dict) else None)
            yield {**message, "finish_reason": finish} if finish and "finish_reason" not in message else message
        return
    if document.get("type") == "constructor" and isinstance(document.get("kwargs"), dict):  # LangChain's
        named = document.get("id")
        kind = named[-1] if isinstance(named, list) and named else ""
        yield from _one({"role": str(kind), **document["kwargs"], "type": None}, role)
        return
    if isinstance(document.get("data"), dict) and str(document.get("type")).lower() in _ROLES:
        yield from _one({"role": document["type"], **document["data"]}, role)
        return
    if _is_message(document):
        yield from _one(document, role)
        return
    config = document["config"] if isinstance(document.get("config"), dict) else {}  # google-genai's
    system = next(filter(None, map({**config, **document}.get, _SYSTEM)), None)
    if isinstance(system, (str, list, dict)):
        yield from _messages(
            system if isinstance(system, str) else {"role": "system", **_parts(system)}, "system", depth + 1
        )
    within = next((document[name] for name in _WITHIN if document.get(name) not in (None, "", [])), None)
    if within is not None:
        yield from _messages(within, role, depth + 1)


def _parts(value: Any) -> Doc:
    return value if isinstance(value, dict) else {"parts": value}


def _is_message(document: Doc) -> bool:
    kind = str(document.get("type") or "")
    return (
        "role" in document
        or "parts" in document
        or kind in ("function_call", "function_call_output", "message", "reasoning", "text", "tool_call")
        or kind.lower() in _ROLES
        or ("content" in document and isinstance(document["content"], (str, list, dict)))
        or "tool_calls" in document
        or set(document) == {"text"}
        or str(document.get("event.name", "")).startswith("gen_ai.")
    )


def _one(document: Doc, role: str) -> Iterator[Doc]:
    """The messages that one message is; several where it holds the results of several tools."""
    kind = str(document.get("type") or "")
    if kind == "function_call":
        yield {"role": "assistant", "content": None, "tool_calls": [_call(document)]}
        return
    if kind == "function_call_output":
        said = as_text(document.get("output"))
        yield {"role": "tool", "tool_call_id": str(document.get("call_id") or ""), "content": said}
        return
    if kind == "reasoning":
        return
    if isinstance(document.get("content"), dict) and ("parts" in document["content"] or "role" in document["content"]):
        inner = {"role": document.get("role") or role, **document["content"]}  # Gemini's candidates
        finish = document.get("finish_reason") or document.get("finishReason")
        yield from _one({**inner, **({"finish_reason": finish} if finish else {})}, role)
        return
    who = _ROLES.get(str(document.get("role") or document.get("type") or role).lower(), role)
    gathered = _Gathered()
    for key in ("content", "contents", "parts", "text"):
        value = document.get(key)
        if value not in (None, "", []):
            gathered.take(
                parsed(value) if key == "content" and isinstance(value, str) and '"function"' in value else value
            )
            break
    extra = document.get("additional_kwargs")
    calls = document.get("tool_calls") or (extra.get("tool_calls") if isinstance(extra, dict) else None)
    gathered.calls += [_call(call) for call in _listed(calls) if isinstance(call, dict)]
    if not gathered.anything and gathered.declares:
        return
    told = document.get("response_metadata")
    about = {**told, **document} if isinstance(told, dict) else document
    finish = next((about[key] for key in ("finish_reason", "finishReason", "stop_reason") if about.get(key)), None)
    yield from gathered.messages(who, document, finish)


def _declares(part: Doc) -> bool:
    """Whether this offers a tool: it has a schema where a call has arguments."""
    function = part.get("function")
    if part.get("type") != "function" or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return False
    return "arguments" not in function and bool({"parameters", "description"} & function.keys())


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class _Gathered:
    """The text, the tool calls and the tool results in one message's content."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[Doc] = []
        self.results: list[Doc] = []
        self.declares = False  # whether a tool is offered, which is no word of anybody's

    @property
    def anything(self) -> bool:
        """Whether anything was said."""
        return bool(self.texts or self.calls or self.results)

    def take(self, value: Any) -> None:
        if isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, list):
            for item in value:
                self.take(item)
        elif isinstance(value, dict):
            self._part(value)

    def _part(self, part: Doc) -> None:
        kind = str(part.get("type") or "")
        nested = part.get("message_content")
        if isinstance(nested, dict):
            self._part(nested)
        elif _declares(part):
            self.declares = True
        elif kind in ("tool_call", "tool_use", "function", "tool-call", "function_call"):
            self.calls.append(_call(part))
        elif kind in ("tool_call_response", "tool_result", "tool-result", "function_call_output"):
            self.results.append(_result(part))
        elif isinstance(call := part.get("functionCall") or part.get("function_call"), dict):
            self.calls.append(_call(call))
        elif isinstance(answer := part.get("functionResponse") or part.get("function_response"), dict):
            self.results.append(_result(answer))
        elif isinstance(use := part.get("toolUse"), dict):  # Bedrock's Converse
            self.calls.append(_call(use))
        elif isinstance(answer := part.get("toolResult"), dict):
            self.results.append(_result(answer))
        elif kind in ("reasoning", "thinking") or part.get("thought") is True:
            return
        elif isinstance(text := part.get("text", part.get("content")), str):
            self.texts.append(text)

    def messages(self, role: str, document: Doc, finish: Any) -> Iterator[Doc]:
        yield from self.results
        text = "".join(self.texts)
        if self.calls:  # some write the call as a message of the tool
            message: Doc = {"role": "assistant", "content": text or None, "tool_calls": self.calls}
        elif role == "tool" and not self.results:
            text = text or as_text(document.get("content"))  # what is no text of ours is still what the tool said
            answered = document.get("tool_call_id") or document.get("id") or ""
            message = {"role": "tool", "tool_call_id": str(answered), "content": text}
            if document.get("name"):
                message["name"] = str(document["name"])
        elif self.results and not text:
            return
        else:
            message = {"role": role, "content": text}
        yield {**message, "finish_reason": str(finish)} if finish else message


def _call(value: Doc) -> Doc:
    value = value["tool_call"] if isinstance(value.get("tool_call"), dict) else value
    function = value["function"] if isinstance(value.get("function"), dict) else value
    arguments: Any = next((function[k] for k in ("arguments", "args", "input") if function.get(k) is not None), {})
    key = as_text(value.get("call_id") or value.get("id") or value.get("toolCallId") or value.get("toolUseId"))
    name = str(function.get("name") or function.get("toolName") or "")
    return {"id": key, "type": "function", "function": {"name": name, "arguments": as_text(arguments)}}


def _result(part: Doc) -> Doc:
    said = next((part[k] for k in ("response", "result", "output", "content") if part.get(k) is not None), "")
    if isinstance(said, list) and all(isinstance(item, dict) and isinstance(item.get("text"), str) for item in said):
        said = "".join(item["text"] for item in said)
    key = as_text(next((part[k] for k in _ANSWERS if part.get(k)), None))
    message: Doc = {"role": "tool", "tool_call_id": key, "content": as_text(said)}
    name = part.get("name") or part.get("toolName")
    return {**message, "name": str(name)} if name else message


def _answered(messages: list[Doc]) -> list[Doc]:
    """The same with ids where a trace has none: results answer the calls before them, in order."""
    waiting: list[Doc] = []
    for number, message in enumerate(messages):
        for index, call in enumerate(message.get("tool_calls") or ()):
            call["id"] = call["id"] or f"call_{number}_{index}"
            waiting.append(call)
        if message["role"] != "tool":
            continue
        known = next((call for call in waiting if call["id"] == message["tool_call_id"]), None)
        if known is None and waiting and not message["tool_call_id"]:
            known = _first(waiting, message.get("name"))
            message["tool_call_id"] = known["id"]
        if known is not None:
            waiting.remove(known)
    return messages


def _first(waiting: list[Doc], name: Any) -> Doc:
    named: Iterable[Doc] = (call for call in waiting if name and call["function"]["name"] == name)
    return next(iter(named), waiting[0])
