"""Tool results in Gemini's Interactions: steps `function_result`, on their own or in a turn of the user.

A result is text, a list of contents, or an object. Most requests hold the new results only, because the service keeps
the interaction that `previous_interaction_id` names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flakestorm.wire.results import Found, Told, one_text
from flakestorm.wire.shape import Doc, dump, items, obj, parse, string, text_of
from flakestorm.wire.splice import Path

__all__ = ["find", "holds", "spell"]


def holds(body: bytes) -> bool:
    """Whether a request may hold results, told without reading it."""
    return b'"function_result"' in body


def find(doc: Doc) -> Sequence[Found]:
    """The results in a request, in conversation order. One that does not name its tool has that of its call."""
    found: list[Found] = []
    called: dict[str, str] = {}  # call id -> tool
    resumed = bool(doc.get("previous_interaction_id"))
    for path, step in _steps(doc.get("input")):
        if step.get("type") == "function_call":
            called[string(step.get("id"))] = string(step.get("name"))
        elif step.get("type") == "function_result":
            call_id = string(step.get("call_id"))
            name = string(step.get("name")) or called.get(call_id, "")
            told = Told(_text(step.get("result")), step.get("is_error") is True)
            found.append(Found(call_id, name, told, path, step, resumed=resumed))
    return found


def spell(entry: Doc, told: Told) -> Mapping[str, object]:
    """The result in the shape that it has, and `is_error` where it must say something else than it does."""
    before = entry.get("result")
    result: object = one_text(before, told.text, "text")
    if isinstance(before, dict):
        stated = parse(told.text.encode("utf-8", "surrogatepass"))
        result = {"result": told.text} if stated is None else stated
    members: dict[str, object] = {"result": result}
    if told.failed is not (entry.get("is_error") is True):
        members["is_error"] = told.failed
    return members


def _steps(given: object) -> Iterator[tuple[Path, Doc]]:
    if isinstance(given, dict):
        yield ("input",), given
    for index, step in enumerate(items(given)):
        if isinstance(step, dict):
            yield ("input", index), step
            for place, part in enumerate(items(step.get("content"))):
                yield ("input", index, "content", place), obj(part)


def _text(result: object) -> str:
    if isinstance(result, dict):
        return dump(result).decode() if result else ""
    return text_of(result)
