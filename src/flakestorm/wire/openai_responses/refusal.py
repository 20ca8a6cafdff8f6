"""Refusals of the Responses API: a text that is one stands in parts, and comes in events, of its own kind."""

from __future__ import annotations

from flakestorm.wire.shape import Doc, obj, objects, string

__all__ = ["refuse", "refuse_event"]

_EVENTS = {
    "response.output_text.delta": "response.refusal.delta",
    "response.output_text.done": "response.refusal.done",
}
_PARTS = ("response.content_part.added", "response.content_part.done")
_ITEMS = ("response.output_item.added", "response.output_item.done")


def refuse(response: Doc) -> None:
    """Make every text of a response a refusal that says the same."""
    for item in objects(response.get("output")):
        _refuse_item(item)


def refuse_event(doc: Doc) -> bool:
    """Make an event that states a text state a refusal; tells whether it is one."""
    kind = string(doc.get("type"))
    if kind in _EVENTS:
        doc["type"] = _EVENTS[kind]
        doc.pop("logprobs", None)
        if "text" in doc:
            doc["refusal"] = doc.pop("text")
        return True
    if kind in _PARTS:
        return _refuse_part(obj(doc.get("part")))
    return kind in _ITEMS and _refuse_item(obj(doc.get("item")))


def _refuse_item(item: Doc) -> bool:
    if item.get("type") != "message":
        return False
    refused = [_refuse_part(part) for part in objects(item.get("content"))]  # each of them, not up to the first
    return True in refused


def _refuse_part(part: Doc) -> bool:
    if part.get("type") != "output_text":
        return False
    text = part.get("text")
    part.clear()
    part.update(type="refusal", refusal=text)
    return True
