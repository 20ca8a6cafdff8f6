"""Tool results in Cohere's chat: messages of role `tool`, of text, of text blocks, or of documents.

A document's `data` is an object, or text that mostly is JSON. Cohere's first version keeps results apart from the
conversation; they are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flakestorm.wire.results import Found, Told, one_text
from flakestorm.wire.shape import Doc, dump, items, obj, objects, parse, string

__all__ = ["find", "holds", "result_text", "spell"]


def holds(body: bytes) -> bool:
    """Whether a request may hold results, told without reading it."""
    return b'"tool"' in body


def find(doc: Doc) -> Sequence[Found]:
    """The results in a request, in conversation order; each is named by the last call with its id."""
    found: list[Found] = []
    called: dict[str, str] = {}  # call id -> tool
    for index, message in enumerate(items(doc.get("messages"))):
        if not isinstance(message, dict):
            continue
        for call in objects(message.get("tool_calls")):
            called[string(call.get("id"))] = string(obj(call.get("function")).get("name"))
        if message.get("role") == "tool":
            call_id = string(message.get("tool_call_id"))
            told = Told(result_text(message.get("content")))
            found.append(Found(call_id, called.get(call_id, ""), told, ("messages", index), message))
    return found


def result_text(content: object) -> str:
    """What a result says: a string, or the texts and the documents of a list."""
    if isinstance(content, list):
        return "".join(_said(block) for block in objects(content))
    return string(content)


def spell(entry: Doc, told: Told) -> Mapping[str, object]:
    """The protocol has no mark for failures; the text says so. A list of documents becomes one document."""
    content = entry.get("content")
    first = next((block for block in objects(content) if block.get("type") == "document"), None)
    if first is None or not told.text:
        return {"content": one_text(content, told.text, "text")}
    document = obj(first.get("document"))
    data: object = told.text
    if not isinstance(document.get("data"), str):
        stated = parse(told.text.encode("utf-8", "surrogatepass"))
        data = {"result": told.text} if stated is None else stated
    return {"content": [{**first, "document": {**document, "data": data}}]}


def _said(block: Doc) -> str:
    if block.get("type") != "document":
        return string(block.get("text"))
    data = obj(block.get("document")).get("data")
    return data if isinstance(data, str) else dump(data).decode() if data else ""
