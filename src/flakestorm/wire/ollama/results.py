"""Tool results in Ollama's chat: messages of role `tool`.

Calls have ids in recent versions only. Without one, a result names its tool (`tool_name`, or `name`), or answers the
calls of the assistant's last message in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flakestorm.wire.results import Found, Told
from flakestorm.wire.shape import Doc, dump, items, obj, objects, string

__all__ = ["find", "holds", "spell"]

_Call = tuple[str, str, str]  # id, tool, arguments


def holds(body: bytes) -> bool:
    """Whether a request may hold results, told without reading it."""
    return b'"tool"' in body


def find(doc: Doc) -> Sequence[Found]:
    """The results in a request, in conversation order."""
    found: list[Found] = []
    called: dict[str, str] = {}  # call id -> tool
    waiting: list[_Call] = []  # calls of the assistant's last message that are not answered yet
    for index, message in enumerate(items(doc.get("messages"))):
        if not isinstance(message, dict):
            continue
        if calls := [_call(call) for call in objects(message.get("tool_calls"))]:
            waiting = calls
            called.update((call_id, name) for call_id, name, _ in calls)
        if message.get("role") == "tool":
            call_id = string(message.get("tool_call_id"))
            stated = called.get(call_id) if call_id else ""
            stated = stated or string(message.get("tool_name")) or string(message.get("name"))
            at = next((n for n, call in enumerate(waiting) if _answers(call_id, stated, call)), None)
            _, name, asked = ("", stated, "") if at is None else waiting.pop(at)
            told = Told(string(message.get("content")))
            found.append(Found(call_id, stated or name, told, ("messages", index), message, asked))
    return found


def spell(_entry: Doc, told: Told) -> Mapping[str, object]:
    """The protocol has no mark for failures; the text says so."""
    return {"content": told.text}


def _call(call: Doc) -> _Call:
    function = obj(call.get("function"))
    return string(call.get("id")), string(function.get("name")), dump(function.get("arguments")).decode()


def _answers(call_id: str, stated: str, call: _Call) -> bool:
    return call[0] == call_id if call_id and call[0] else not stated or call[1] == stated
