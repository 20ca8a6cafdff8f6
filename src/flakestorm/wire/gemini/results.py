"""Tool results in Gemini: `functionResponse` parts. A result is an object, and its call often has no id.

Clients spell the object in their own ways: `{"result": ...}`, `{"output": ...}`, `{"return_value": ...}`, whatever the
function returned where that was an object, and `{"error": ...}` for a failure. Proto names (`function_response`) are
accepted as the API accepts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flakestorm.wire.results import Found, Told
from flakestorm.wire.shape import Doc, dump, items, obj, parse, string

__all__ = ["find", "holds", "spell"]

_RESPONSES = ("functionResponse", "function_response")
_CALLS = ("functionCall", "function_call")


def holds(body: bytes) -> bool:
    """Whether a request may hold results, told without reading it."""
    return b'"functionResponse"' in body or b'"function_response"' in body


def find(doc: Doc) -> Sequence[Found]:
    """The results in a request, in conversation order. Those without an id answer the calls of their name in order."""
    found: list[Found] = []
    asked: dict[str, list[str]] = {}  # tool -> arguments of its calls that are not answered yet
    for index, content in enumerate(items(doc.get("contents"))):
        for place, part in enumerate(items(obj(content).get("parts"))):
            for key in _CALLS:
                if call := obj(obj(part).get(key)):
                    asked.setdefault(string(call.get("name")), []).append(dump(call.get("args")).decode())
            for key in _RESPONSES:
                if answer := obj(obj(part).get(key)):
                    name, told = string(answer.get("name")), _told(obj(answer.get("response")))
                    waiting = asked.get(name)
                    arguments = waiting.pop(0) if waiting else ""
                    path = ("contents", index, "parts", place, key)
                    found.append(Found(string(answer.get("id")), name, told, path, answer, arguments))
    return found


def spell(entry: Doc, told: Told) -> Mapping[str, object]:
    """A failure is `{"error": text}`. A text that is a JSON object is that object; any other goes under the key that
    held the one text before, or `result`. Files and images of the old result are left out."""
    before = obj(entry.get("response"))
    key = _only_text(before)
    document = None if told.failed or key else parse(told.text.encode("utf-8", "surrogatepass"))
    response = {"error": told.text} if told.failed else document
    members: dict[str, object] = {"response": {key or "result": told.text} if response is None else response}
    if "parts" in entry:
        members["parts"] = []
    return members


def _told(response: Doc) -> Told:
    failed = "error" in response
    if failed and len(response) == 1:
        error = response["error"]
        return Told(error if isinstance(error, str) else dump(error).decode(), failed=True)
    key = _only_text(response)
    return Told(string(response[key]) if key else dump(response).decode() if response else "", failed)


def _only_text(response: Doc) -> str:
    """The key of the one text that is the whole response; empty where it is anything else."""
    key = next(iter(response), "")
    return key if len(response) == 1 and key != "error" and isinstance(response[key], str) else ""
