"""What the events of a span say: before messages were attributes, they were events, and still are in log records.

Conventions differ in where an event keeps a message: in attributes of its own, as JSON in one of them (Azure), as the
content blocks of a provider (Strands), or all events as JSON in an attribute of the span (logfire).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flakestorm.importers.messages import Doc, parsed
from flakestorm.wire import gen_ai

__all__ = ["Events", "asked_in", "said_in", "tool_in"]

Events = Iterable[tuple[str, Mapping[str, Any]]]
"""Names and attributes."""

_MESSAGE = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_BLOCKS = {"text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint"}
"""What a content block of Bedrock's Converse is called by."""


def asked_in(events: Events, attributes: Mapping[str, Any]) -> list[Any]:
    """The messages that a model was told, each in a form that `messages.conversation` reads."""
    found: list[Any] = []
    for name, of in _all(events, attributes):
        if name == "gen_ai.content.prompt":
            found.append(parsed(of.get("gen_ai.prompt")))
        elif name == "gen_ai.client.inference.operation.details":
            found.append(parsed(of.get(gen_ai.INPUT)))
        elif match := _MESSAGE.fullmatch(name):
            found.append({"role": match[1], **of, **_calls(of), "content": _content(of.get("content"))})
    return found


def said_in(events: Events, attributes: Mapping[str, Any]) -> list[Any]:
    """The same for what it answered."""
    found: list[Any] = []
    for name, of in _all(events, attributes):
        if name == "gen_ai.content.completion":
            found.append(parsed(of.get("gen_ai.completion")))
        elif name == "gen_ai.client.inference.operation.details":
            found.append(parsed(of.get(gen_ai.OUTPUT)))
        elif name == "gen_ai.choice":
            found.append({"role": "assistant", "finish_reason": of.get("finish_reason"), **_answer(of)})
    return found


def tool_in(events: Events) -> tuple[Any, Any]:
    """What a tool was given, and what it said; None for what no event tells."""
    given: Any = None
    said: Any = None
    for name, of in _all(events, {}):
        if name == "gen_ai.tool.message":
            given = parsed(of.get("content"))
        elif name == "gen_ai.choice":
            content = _answer(of).get("content")
            blocks = content if isinstance(content, list) else []
            texts = [block.get("text") for block in blocks if isinstance(block, dict)]
            said = "".join(map(str, texts)) if texts and all(isinstance(t, str) for t in texts) else content
    return given, said


def _all(events: Events, attributes: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed = parsed(attributes.get("events"))  # as logfire keeps them
    logged = [(str(e.get("event.name")), e) for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []
    for name, of in [*events, *logged]:
        inside = parsed(of.get("gen_ai.event.content"))
        yield name, {**of, **inside} if isinstance(inside, dict) else of


def _answer(of: Mapping[str, Any]) -> Doc:
    """What a choice says: a message, or the content of one."""
    message = _content(of.get("message"))
    if isinstance(message, str):
        document = parsed(message)
        message = document if isinstance(document, dict) else message
    if isinstance(message, dict):
        return {**message, "content": _content(message.get("content"))}
    return {"content": _content(of.get("content")) if message is None else message, **_calls(of)}


def _calls(of: Mapping[str, Any]) -> Doc:
    return {"tool_calls": parsed(of["tool_calls"])} if of.get("tool_calls") else {}


def _content(value: Any) -> Any:
    """Content blocks, where a text is a list of those and nothing else; any other value as it is."""
    blocks = parsed(value) if isinstance(value, str) else None
    if isinstance(blocks, list) and blocks and all(isinstance(b, dict) and b.keys() & _BLOCKS for b in blocks):
        return blocks
    return value
