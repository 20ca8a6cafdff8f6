"""Tool calls of the protocols that `snapshots` edits, whose arguments are objects: Gemini, Ollama, Converse.

Arguments that are no JSON fit into no object. Google and Amazon answer with a finish of its own and no tool call where
their model wrote such; Ollama, which reads tool calls out of the text, leaves what it cannot read in the text.

A tool call of Gemini that comes in pieces, which an agent must have asked for, is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from flakestorm.wire.base import ToolCall
from flakestorm.wire.calls import CallForm, Mapped
from flakestorm.wire.shape import Doc, dump, parse, string
from flakestorm.wire.snapshots import Answer, Answers, Part

__all__ = ["snapshot_calls"]

_Found = tuple[int, Answer, Part]
"""The position of a document, the answer in it, and the tool call in that."""


def snapshot_calls(answers: Answers) -> CallForm:
    """The form of a protocol that has these answers."""

    def has(doc: Doc) -> bool:
        return any(part.kind == "call" for answer in answers(doc) for part in answer.parts)

    def put(docs: Sequence[Doc], to: Mapped) -> set[int]:
        stated = [(at, answer) for at, doc in enumerate(docs) for answer in answers(doc)]
        changed: set[int] = set()
        for at, answer, part in _calls(stated):
            call = _call(part)
            new = to(call)
            if new == call:
                continue
            changed.add(at)
            arguments = parse(new.arguments.encode("utf-8", "surrogatepass"))
            if arguments is None:
                changed |= _misspelt(stated, (at, answer, part), new, answers.malformed)
                continue
            part.holder["name"] = new.name
            part.holder[part.key] = new.arguments if isinstance(part.holder.get(part.key), str) else arguments
        return changed

    return CallForm(has, lambda _event, _doc: False, put)


def _calls(stated: Sequence[tuple[int, Answer]]) -> list[_Found]:
    """The tool calls that come whole."""
    found: dict[int, list[list[_Found]]] = {}
    for at, answer in stated:
        for part in answer.parts:
            if part.kind == "call":
                calls = found.setdefault(answer.index, [])
                if part.begins or not calls:
                    calls.append([])
                calls[-1].append((at, answer, part))
    return [pieces[0] for calls in found.values() for pieces in calls if len(pieces) == 1]


def _call(part: Part) -> ToolCall:
    holder = part.holder
    call_id = string(holder.get("id")) or string(holder.get("toolUseId")) or string(part.entry.get("id"))
    return ToolCall(call_id, string(holder.get("name")), part.said or "{}")


def _misspelt(stated: Sequence[tuple[int, Answer]], found: _Found, call: ToolCall, word: str | None) -> set[int]:
    """What the provider makes of a tool call that it cannot read; gives the positions of documents that changed."""
    at, answer, part = found
    if word is None:
        text = "".join(other.said for other in answer.parts if other.kind == "text")
        answer.keep([other for other in answer.parts if other.entry is not part.entry])
        answer.say(f'{text}{{"name": {dump(call.name).decode()}, "arguments": {call.arguments}')
        return {at}
    changed = set()
    for place, other in stated:
        if other.index != answer.index:
            continue
        parts = other.parts
        left = [each for each in parts if each.kind != "call"]
        if len(left) < len(parts):
            other.keep(left)
            changed.add(place)
        if other.finish is not None:
            other.finish = word
            changed.add(place)
    return changed
