"""The parts a Chat Completions message is made of, in a whole message and in the deltas of a stream."""

from __future__ import annotations

from typing import Any

from flakestorm.wire.base import ToolCall
from flakestorm.wire.shape import Doc, dump, number, obj, objects, string

__all__ = ["Fragments", "content_text", "function_of", "slot_of"]


def content_text(content: object) -> str:
    """The text of a `content`: a string, or the text parts of a list (other parts are images, audio, reasoning)."""
    if isinstance(content, list):
        return "".join(string(part.get("text")) for part in objects(content) if part.get("type") == "text")
    return string(content)


def function_of(entry: Doc) -> tuple[Doc, str]:
    """The part of a tool call that has its name, and the key its arguments are under."""
    if isinstance(entry.get("custom"), dict):
        return entry["custom"], "input"  # a custom tool takes free text
    return obj(entry.get("function")), "arguments"


def slot_of(entry: Doc, position: int, last: object) -> object:
    """Which tool call an entry of a delta belongs to.

    The protocol says `index`. Some providers leave it out and send an id with the first fragment only.
    """
    index = number(entry.get("index"))
    if index is not None:
        return index
    return string(entry.get("id")) or (position if last is None else last)


class Fragments:
    """Puts tool calls together from the fragments of a stream, or from one whole message."""

    def __init__(self) -> None:
        self._parts: dict[Any, list[str]] = {}  # slot -> id, name, arguments
        self._last: object = None

    def add(self, message: Doc, *, streamed: bool) -> None:
        """Take the tool calls of a message, or of a delta when streamed."""
        for position, entry in enumerate(objects(message.get("tool_calls"))):
            slot = self._last = slot_of(entry, position, self._last) if streamed else position
            function, key = function_of(entry)
            self._grow(slot, string(entry.get("id")), function, key)
        legacy = message.get("function_call")
        if isinstance(legacy, dict):
            self._grow("function_call", "", legacy, "arguments")

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls so far, in order of first appearance."""
        return tuple(ToolCall(*part) for part in self._parts.values())

    def _grow(self, slot: object, call_id: str, function: Doc, key: str) -> None:
        part = self._parts.setdefault(slot, ["", "", ""])
        part[0] = part[0] or call_id
        part[1] += string(function.get("name"))
        arguments = function.get(key)
        if arguments is not None:
            part[2] += arguments if isinstance(arguments, str) else dump(arguments).decode()
