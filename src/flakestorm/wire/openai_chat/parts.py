"""The parts a Chat Completions message is made of, in a whole message and in the deltas of a stream."""

from __future__ import annotations

from typing import Any

from flakestorm.wire.base import ToolCall
from flakestorm.wire.shape import Doc, dump, number, obj, objects, string

__all__ = ["Fragments", "Slots", "function_of", "usages_of"]


def usages_of(doc: Doc) -> list[Doc]:
    """Where a document states its usage: at OpenAI's place, and where Groq's streams do, some of them there alone."""
    return [usage for usage in (obj(doc.get("usage")), obj(obj(doc.get("x_groq")).get("usage"))) if usage]


def function_of(entry: Doc) -> tuple[Doc, str]:
    """The part of a tool call that has its name, and the key its arguments are under."""
    if isinstance(entry.get("custom"), dict):
        return entry["custom"], "input"  # a custom tool takes free text
    return obj(entry.get("function")), "arguments"


class Slots:
    """Which tool call each entry of a stream's deltas belongs to.

    The protocol says `index`. Some providers leave it out and send an id, or only a name, with the first fragment; and
    some give every call the same index, each with an id and a name of its own. An id that changes under a name that was
    given once is no other call: there are servers that make one up for each fragment.
    """

    def __init__(self) -> None:
        self._named: dict[object, str] = {}  # slot -> id under which a call of that slot was named
        self._now: dict[int, object] = {}  # index -> its last slot
        self._last: object = None

    def of(self, entry: Doc) -> object:
        """The slot of an entry; entries come in the order of the stream."""
        index, call_id = number(entry.get("index")), string(entry.get("id"))
        names = bool(function_of(entry)[0].get("name"))
        if index is not None:
            slot = self._now.get(index, index)
            if names and call_id and self._named.get(slot, call_id) not in ("", call_id):
                slot = (index, call_id)
        elif call_id:
            slot = call_id
        else:
            slot = ("unnumbered", len(self._named)) if names or self._last is None else self._last
        if names:
            self._named.setdefault(slot, call_id)
        if index is not None:
            self._now[index] = slot
        self._last = slot
        return slot


class Fragments:
    """Puts tool calls together from the fragments of a stream, or from one whole message."""

    def __init__(self) -> None:
        self._parts: dict[Any, list[str]] = {}  # slot -> id, name, arguments
        self._slots = Slots()

    def add(self, message: Doc, *, streamed: bool) -> None:
        """Take the tool calls of a message, or of a delta when streamed."""
        for position, entry in enumerate(objects(message.get("tool_calls"))):
            slot = self._slots.of(entry) if streamed else position
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
