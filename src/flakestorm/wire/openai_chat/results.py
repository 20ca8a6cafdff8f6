"""Tool results in OpenAI Chat Completions: messages of role `tool`, and of the older role `function`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from flakestorm.wire.results import Found, Told, one_text
from flakestorm.wire.shape import Doc, items, obj, objects, string, text_of

__all__ = ["find", "holds", "spell"]


_ROLE = re.compile(rb'"role"\s*:\s*"function"')


def holds(body: bytes) -> bool:
    """Whether a request may hold results, told without reading it. Tools on offer are of type `function` too."""
    return b'"tool"' in body or (b'"function"' in body and _ROLE.search(body) is not None)


def find(doc: Doc) -> Sequence[Found]:
    """The results in a request, in conversation order.

    A `tool` message quotes the id of its call and seldom the tool's name; the assistant's last message with that id
    has it. A `function` message has the name and no id; it answers the last `function_call` of that name.
    """
    found: list[Found] = []
    called: dict[str, str] = {}  # call id -> tool
    asked: dict[str, str] = {}  # function -> arguments it was last called with
    for index, message in enumerate(items(doc.get("messages"))):
        if not isinstance(message, dict):
            continue
        for call in objects(message.get("tool_calls")):
            part = obj(call.get("function")) or obj(call.get("custom"))
            called[string(call.get("id"))] = string(part.get("name"))
        if legacy := obj(message.get("function_call")):
            asked[string(legacy.get("name"))] = string(legacy.get("arguments"))
        told = Told(text_of(message.get("content")))
        name = string(message.get("name"))
        if message.get("role") == "tool":
            call_id = string(message.get("tool_call_id"))
            found.append(Found(call_id, called.get(call_id) or name, told, ("messages", index), message))
        elif message.get("role") == "function":
            found.append(Found("", name, told, ("messages", index), message, asked.get(name, "")))
    return found


def spell(entry: Doc, told: Told) -> Mapping[str, object]:
    """The protocol has no mark for failures; the text says so."""
    return {"content": one_text(entry.get("content"), told.text, "text")}
