"""Tool calls of the Responses API: items of the output, which a stream states in deltas, when done, and in the end."""

from __future__ import annotations

from collections.abc import Sequence

from flakestorm.wire.base import ToolCall
from flakestorm.wire.calls import CallForm, Mapped
from flakestorm.wire.editing import spread
from flakestorm.wire.openai_responses.edit import ARGUMENTS, ENDS
from flakestorm.wire.shape import Doc, number, obj, objects, string
from flakestorm.wire.sse import Event

__all__ = ["RESPONSES_CALLS"]

_ADDED, _DONE = "response.output_item.added", "response.output_item.done"
_DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_STATED_IN = {
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}


def _output(doc: Doc) -> list[Doc]:
    """The items a whole response, or the event that carries one, states."""
    response = obj(doc.get("response")) if "response" in doc else doc
    return [item for item in objects(response.get("output")) if string(item.get("type")) in ARGUMENTS]


def _item(doc: Doc) -> Doc:
    item = obj(doc.get("item")) if doc.get("type") in (_ADDED, _DONE) else {}
    return item if string(item.get("type")) in ARGUMENTS else {}


def _has(doc: Doc) -> bool:
    return bool(_item(doc) or _output(doc))


def _ends(_event: Event, doc: Doc) -> bool:
    return doc.get("type") in (*ENDS, "error")


def _put(docs: Sequence[Doc], to: Mapped) -> set[int]:
    streamed = _streamed(docs)
    new = {call.id: to(call) for call in streamed.values()}
    old = {call.id: call for call in streamed.values()}
    for item in (item for doc in docs for item in _output(doc)):  # what was never streamed, or not a stream at all
        call = _stated(item)
        if call.id not in new:
            old[call.id], new[call.id] = call, to(call)
    gone = {index: new[call.id] for index, call in streamed.items() if new[call.id] != call}
    changed = _spell_events(docs, gone)
    for at, doc in enumerate(docs):
        for item in _output(doc):
            call_id = string(item.get("call_id"))
            if new[call_id] != old[call_id]:
                _spell(item, new[call_id])
                changed.add(at)
    return changed


def _streamed(docs: Sequence[Doc]) -> dict[int, ToolCall]:
    """The tool calls that come as items of a stream, by the number of the item."""
    items: dict[int, Doc] = {}
    pieces: dict[int, list[str]] = {}
    for doc in docs:
        index = number(doc.get("output_index")) or 0
        if item := _item(doc):
            items[index] = item
        elif doc.get("type") in _DELTAS:
            pieces.setdefault(index, []).append(string(doc.get("delta")))
    found = {}
    for index, item in items.items():
        call = _stated(item)
        found[index] = ToolCall(call.id, call.name, call.arguments or "".join(pieces.get(index, ())))
    return found


def _spell_events(docs: Sequence[Doc], new: dict[int, ToolCall]) -> set[int]:
    changed: set[int] = set()
    deltas: dict[int, list[Doc]] = {}
    for at, doc in enumerate(docs):
        index, kind = number(doc.get("output_index")) or 0, string(doc.get("type"))
        if index not in new:
            continue
        if item := _item(doc):
            _spell(item, new[index], begun=kind == _ADDED)
        elif kind in _DELTAS:
            deltas.setdefault(index, []).append(doc)
        elif kind in _STATED_IN:
            doc[_STATED_IN[kind]] = new[index].arguments
            if doc.get("name"):
                doc["name"] = new[index].name
        else:
            continue
        changed.add(at)
    for index, said in deltas.items():
        for doc, piece in zip(said, spread(new[index].arguments, len(said)), strict=True):
            doc["delta"] = piece
    return changed


def _stated(item: Doc) -> ToolCall:
    return ToolCall(string(item.get("call_id")), string(item.get("name")), string(item.get(ARGUMENTS[item["type"]])))


def _spell(item: Doc, new: ToolCall, *, begun: bool = False) -> None:
    """Make an item ask for this; one that has only begun states no arguments yet."""
    item["name"] = new.name
    key = ARGUMENTS[item["type"]]
    if not begun or item.get(key):
        item[key] = new.arguments


RESPONSES_CALLS = CallForm(_has, _ends, _put)
"""The form of the Responses API."""
