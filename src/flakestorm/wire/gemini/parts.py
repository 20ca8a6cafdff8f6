"""The parts of a Gemini answer, as `snapshots` edits them.

A text without words that would be left by an edit goes altogether, because the API refuses empty texts when the agent
sends its history back; unless it carries a thought's signature, which must go back as it came.

A tool call may come in pieces where the agent asked for that (`streamFunctionCallArguments`): one with the name, then
ones without, whose `partialArgs` say which value of the arguments they go on with. A piece is counted as it is written
and goes out whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from flakestorm.wire.base import Finish, ToolCall
from flakestorm.wire.shape import Doc, dump, items, number, obj, objects, string
from flakestorm.wire.snapshots import Part, limit_usage

__all__ = ["CallPieces", "GeminiAnswer", "GeminiAnswers", "content_text"]

_WORDS: dict[Finish, str] = {
    "length": "MAX_TOKENS",
    "stop": "STOP",
    "refusal": "STOP",  # a refusal is text like any other
    "content_filter": "SAFETY",
}
_UNSAFE = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}


def content_text(content: Doc) -> str:
    """The text of a `Content`: its text parts without the thoughts."""
    return "".join(part["text"] for part in objects(content.get("parts")) if _is_text(part))


def _is_text(part: Doc) -> bool:
    return isinstance(part.get("text"), str) and part.get("thought") is not True


class CallPieces:
    """Puts tool calls together, from whole ones or from the pieces of a stream."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, str, Doc]] = []

    def add(self, content: Doc) -> None:
        """Take the tool calls of a `Content`."""
        for part in objects(content.get("parts")):
            call = part.get("functionCall")
            if not isinstance(call, dict):
                continue
            if call.get("name") or not self._calls:
                self._calls.append((string(call.get("id")), string(call.get("name")), {**obj(call.get("args"))}))
            for piece in objects(call.get("partialArgs")):
                _grow(self._calls[-1][2], piece)

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls so far."""
        return tuple(ToolCall(call_id, name, dump(arguments).decode()) for call_id, name, arguments in self._calls)


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[['\"](.+?)['\"]\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_MAX_ITEMS = 10_000


def _grow(arguments: Doc, piece: Doc) -> None:
    """Put one value, or more of a text, where a piece's `jsonPath` says."""
    steps = [
        int(index) if index else name or quoted for name, index, quoted in _STEP.findall(string(piece.get("jsonPath")))
    ]
    key = next((key for key in _VALUES if key in piece), None)
    if key is None or not steps or any(isinstance(step, int) and step > _MAX_ITEMS for step in steps):
        return
    value = None if key == "nullValue" else piece[key]
    place: Any = arguments
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(place, list) and isinstance(step, int):
            place.extend([None] * (step + 1 - len(place)))
            old = place[step]
        elif isinstance(place, dict) and isinstance(step, str):
            old = place.get(step)
        else:
            return  # it contradicts what came before
        if following is None:
            new = old + value if isinstance(old, str) and isinstance(value, str) else value
        else:
            new = old if isinstance(old, dict | list) else [] if isinstance(following, int) else {}
        place[step] = new
        place = new


class GeminiAnswer:
    """One candidate; see `snapshots.Answer`."""

    def __init__(self, candidate: Doc) -> None:
        self._candidate = candidate
        self.index = number(candidate.get("index")) or 0

    @property
    def parts(self) -> list[Part]:
        """Its parts, in order."""
        return [_part(part) for part in objects(obj(self._candidate.get("content")).get("parts"))]

    def keep(self, parts: Sequence[Part]) -> None:
        """Leave only these parts, and no text without words; a content without parts has no list of them either."""
        content = obj(self._candidate.get("content"))
        kept = {id(part.entry) for part in parts if part.kind != "text" or part.said or len(part.entry) > 1}
        left = [part for part in items(content.get("parts")) if id(part) in kept]
        if left:
            content["parts"] = left
        else:
            content.pop("parts", None)

    def say(self, text: str) -> None:
        """Put in this text before the first tool call."""
        content = self._candidate.setdefault("content", {"role": "model"})
        if not isinstance(content, dict):
            content = self._candidate["content"] = {"role": "model"}
        parts = items(content.get("parts"))
        calls = [at for at, part in enumerate(parts) if obj(part).get("functionCall")]
        place = calls[0] if calls else len(parts)
        content["parts"] = [*parts[:place], {"text": text}, *parts[place:]]

    @property
    def finish(self) -> str | None:
        """Its `finishReason`."""
        return string(self._candidate.get("finishReason")) or None

    @finish.setter
    def finish(self, word: str) -> None:
        self._candidate["finishReason"] = word
        self._candidate.pop("finishMessage", None)
        if word == _WORDS["content_filter"]:
            self._candidate["safetyRatings"] = [{**_UNSAFE}]
        if word in (_WORDS["content_filter"], GeminiAnswers.malformed) and not self.parts:
            self._candidate.pop("content", None)


class GeminiAnswers:
    """The candidates of a `GenerateContentResponse`; see `snapshots.Answers`."""

    words = _WORDS
    malformed = "MALFORMED_FUNCTION_CALL"

    def __call__(self, doc: Doc) -> Sequence[GeminiAnswer]:
        """The candidates in a document."""
        return [GeminiAnswer(candidate) for candidate in objects(doc.get("candidates"))]

    def limit(self, doc: Doc, tokens: int) -> bool:
        """Count no more output tokens than this; thoughts are counted apart by Google itself."""
        usage = obj(doc.get("usageMetadata"))
        changed = limit_usage(usage, "candidatesTokenCount", "totalTokenCount", tokens)
        if changed:
            usage.pop("candidatesTokensDetails", None)
        return changed


def _part(part: Doc) -> Part:
    if isinstance(call := part.get("functionCall"), dict):
        begins = bool(call.get("name"))
        return Part("call", part, call, "args" if begins else "partialArgs", begins=begins)
    return Part("text" if _is_text(part) else "other", part, part, "text")
