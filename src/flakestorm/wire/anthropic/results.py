"""Tool results in Anthropic Messages: `tool_result` blocks. Results of tools that Anthropic runs are not among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flakestorm.wire.results import Found, Told, one_text
from flakestorm.wire.shape import Doc, items, obj, string, text_of

__all__ = ["find", "holds", "spell"]


def holds(body: bytes) -> bool:
    """Whether a request may hold results, told without reading it."""
    return b'"tool_result"' in body


def find(doc: Doc) -> Sequence[Found]:
    """The results in a request, in conversation order; each is named by the last `tool_use` block with its id."""
    found: list[Found] = []
    called: dict[str, str] = {}  # call id -> tool
    for index, message in enumerate(items(doc.get("messages"))):
        for place, block in enumerate(items(obj(message).get("content"))):
            kind = obj(block).get("type")
            if kind == "tool_use":
                called[string(block.get("id"))] = string(block.get("name"))
            elif kind == "tool_result":
                call_id = string(block.get("tool_use_id"))
                told = Told(text_of(block.get("content")), block.get("is_error") is True)
                path = ("messages", index, "content", place)
                found.append(Found(call_id, called.get(call_id, ""), told, path, block))
    return found


def spell(entry: Doc, told: Told) -> Mapping[str, object]:
    """The content, and `is_error` where it must say something else than it does."""
    members: dict[str, object] = {"content": one_text(entry.get("content"), told.text, "text")}
    if told.failed is not (entry.get("is_error") is True):
        members["is_error"] = told.failed
    return members
