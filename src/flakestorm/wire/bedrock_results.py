"""Tool results in Bedrock's Converse: `toolResult` blocks. They are read and never rewritten, because requests are
signed with their bodies."""

from __future__ import annotations

from collections.abc import Sequence

from flakestorm.wire.results import Found, Told
from flakestorm.wire.shape import Doc, dump, items, obj, objects, string

__all__ = ["find", "holds"]


def holds(body: bytes) -> bool:
    """Whether a request may hold results, told without reading it."""
    return b'"toolResult"' in body


def find(doc: Doc) -> Sequence[Found]:
    """The results in a request, in conversation order; each is named by the last `toolUse` block with its id."""
    found: list[Found] = []
    called: dict[str, str] = {}  # call id -> tool
    for index, message in enumerate(items(doc.get("messages"))):
        for place, block in enumerate(items(obj(message).get("content"))):
            if use := obj(obj(block).get("toolUse")):
                called[string(use.get("toolUseId"))] = string(use.get("name"))
            if result := obj(obj(block).get("toolResult")):
                call_id = string(result.get("toolUseId"))
                told = Told("".join(map(_said, objects(result.get("content")))), result.get("status") == "error")
                path = ("messages", index, "content", place, "toolResult")
                found.append(Found(call_id, called.get(call_id, ""), told, path, result))
    return found


def _said(part: Doc) -> str:
    return dump(part["json"]).decode() if "json" in part else string(part.get("text"))
