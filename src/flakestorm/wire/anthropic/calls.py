"""Tool calls of Anthropic Messages: blocks with an object in a whole reply, with pieces of JSON text in a stream.

A stream can hold text that is no JSON, because its pieces are what the model wrote. A whole reply cannot; there such
arguments are the members that were complete before the damage.
"""

from __future__ import annotations

from collections.abc import Sequence

from flakestorm.wire.base import ToolCall
from flakestorm.wire.calls import CallForm, Mapped
from flakestorm.wire.editing import spread
from flakestorm.wire.shape import Doc, dump, number, obj, objects, parse_prefix, string
from flakestorm.wire.sse import Event

__all__ = ["MESSAGES_CALLS"]

_Piece = tuple[int, Doc]
"""The position of a document, and the delta in it."""


def _begun(doc: Doc) -> Doc:
    block = obj(doc.get("content_block")) if doc.get("type") == "content_block_start" else {}
    return block if block.get("type") == "tool_use" else {}


def _has(doc: Doc) -> bool:
    return bool(_begun(doc))


def _ends(_event: Event, doc: Doc) -> bool:
    return doc.get("type") in ("message_stop", "error")


def _put(docs: Sequence[Doc], to: Mapped) -> set[int]:
    changed: set[int] = set()
    for at, block, pieces in _blocks(docs):
        said = "".join(string(delta.get("partial_json")) for _, delta in pieces)
        stated = said or dump(block.get("input") or {}).decode()
        call = ToolCall(string(block.get("id")), string(block.get("name")), stated)
        new = to(call)
        if new.name != call.name:
            block["name"] = new.name
            changed.add(at)
        if new.arguments != call.arguments:
            changed |= _spell(at, block, pieces, new.arguments)
    return changed


def _blocks(docs: Sequence[Doc]) -> list[tuple[int, Doc, list[_Piece]]]:
    """Each tool call: the position of the document it begins in, its block, and the deltas that go on with it."""
    blocks: list[tuple[int, Doc, list[_Piece]]] = []
    open_now: dict[int, list[_Piece]] = {}
    for at, doc in enumerate(docs):
        kind, index = doc.get("type"), number(doc.get("index")) or 0
        if kind == "message":
            asked = [block for block in objects(doc.get("content")) if block.get("type") == "tool_use"]
            blocks += [(at, block, []) for block in asked]
        elif kind == "content_block_start":
            open_now.pop(index, None)
            if block := _begun(doc):
                open_now[index] = []
                blocks.append((at, block, open_now[index]))
        elif index in open_now and obj(doc.get("delta")).get("type") == "input_json_delta":
            open_now[index].append((at, doc["delta"]))
    return blocks


def _spell(at: int, block: Doc, pieces: list[_Piece], arguments: str) -> set[int]:
    """Put other arguments in a block; gives the positions of the documents that changed."""
    spoken = [piece for piece in pieces if piece[1].get("partial_json")] or pieces[:1]
    if not spoken:
        old, block["input"] = block.get("input"), parse_prefix(arguments)
        return {at} if block["input"] != old else set()
    for (_, delta), piece in zip(spoken, spread(arguments, len(spoken)), strict=True):
        delta["partial_json"] = piece
    return {place for place, _ in spoken}


MESSAGES_CALLS = CallForm(_has, _ends, _put)
"""The form of Anthropic Messages."""
