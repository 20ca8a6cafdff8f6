"""Tool calls of Chat Completions: whole in a message, in fragments in the deltas of a stream."""

from __future__ import annotations

from collections.abc import Sequence

from flakestorm.wire.base import ToolCall
from flakestorm.wire.calls import CallForm, Mapped
from flakestorm.wire.editing import spread
from flakestorm.wire.openai_chat.parts import Fragments, Slots, function_of
from flakestorm.wire.shape import Doc, number, obj, objects, parse
from flakestorm.wire.sse import DONE, Event

__all__ = ["CHAT_CALLS"]

_Entry = tuple[int, Doc]
"""The position of a document, and what it says of a tool call."""


def _messages(doc: Doc) -> list[tuple[int, Doc, bool]]:
    """Choice, message or delta, and which of the two it is."""
    found = []
    for choice in objects(doc.get("choices")):
        streamed = isinstance(choice.get("delta"), dict)
        found.append((number(choice.get("index")) or 0, obj(choice.get("delta" if streamed else "message")), streamed))
    return found


def _has(doc: Doc) -> bool:
    return any(message.get("tool_calls") or message.get("function_call") for _, message, _ in _messages(doc))


def _ends(event: Event, _doc: Doc) -> bool:
    return event.data is not None and event.data.startswith(DONE)


def _put(docs: Sequence[Doc], to: Mapped) -> set[int]:
    found: dict[tuple[int, object], list[_Entry]] = {}
    slots: dict[int, Slots] = {}
    for at, doc in enumerate(docs):
        for index, message, streamed in _messages(doc):
            for position, entry in enumerate(objects(message.get("tool_calls"))):
                slot = slots.setdefault(index, Slots()).of(entry) if streamed else position
                found.setdefault((index, slot), []).append((at, entry))
            if isinstance(message.get("function_call"), dict):
                found.setdefault((index, "function_call"), []).append((at, {"function": message["function_call"]}))
    changed: set[int] = set()
    for entries in found.values():
        call = _joined(entries)
        if call is not None and (new := to(call)) != call:
            _spell(entries, new)
            changed.update(at for at, _ in entries)
    return changed


def _joined(entries: list[_Entry]) -> ToolCall | None:
    fragments = Fragments()
    for _, entry in entries:
        fragments.add({"tool_calls": [{**entry, "index": 0}]}, streamed=True)
    return next(iter(fragments.calls()), None)


def _spell(entries: list[_Entry], new: ToolCall) -> None:
    functions = [function_of(entry) for _, entry in entries]
    named = [function for function, _ in functions if function.get("name")]
    for function in named:
        function["name"] = ""
    (named[0] if named else functions[0][0])["name"] = new.name
    spoken = [(function, key) for function, key in functions if function.get(key)] or functions[:1]
    whole = parse(new.arguments.encode("utf-8", "surrogatepass"))
    if len(spoken) == 1 and isinstance(spoken[0][0].get(spoken[0][1]), dict) and whole is not None:
        spoken[0][0][spoken[0][1]] = whole  # some providers send arguments as an object
        return
    for (function, key), piece in zip(spoken, spread(new.arguments, len(spoken)), strict=True):
        function[key] = piece


CHAT_CALLS = CallForm(_has, _ends, _put)
"""The form of Chat Completions."""
