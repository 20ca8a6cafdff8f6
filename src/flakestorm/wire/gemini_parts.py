"""The parts of a Gemini answer, as `snapshots` edits them.

A text without words that would be left by an edit goes altogether, because the API refuses empty texts when the agent
sends its history back; unless it carries a thought's signature, which must go back as it came.
"""

from __future__ import annotations

from collections.abc import Sequence

from flakestorm.wire.shape import Doc, items, number, obj, objects, string
from flakestorm.wire.snapshots import Part, Word

__all__ = ["GeminiAnswer", "GeminiAnswers", "content_text"]

_WORDS: dict[Word, str] = {"length": "MAX_TOKENS", "stop": "STOP"}


def content_text(content: Doc) -> str:
    """The text of a `Content`: its text parts without the thoughts."""
    return "".join(part["text"] for part in objects(content.get("parts")) if _is_text(part))


def _is_text(part: Doc) -> bool:
    return isinstance(part.get("text"), str) and part.get("thought") is not True


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


class GeminiAnswers:
    """The candidates of a `GenerateContentResponse`; see `snapshots.Answers`."""

    words = _WORDS

    def __call__(self, doc: Doc) -> Sequence[GeminiAnswer]:
        """The candidates in a document."""
        return [GeminiAnswer(candidate) for candidate in objects(doc.get("candidates"))]

    def limit(self, doc: Doc, tokens: int) -> bool:
        """Count no more output tokens than this; thoughts are counted apart by Google itself."""
        usage = obj(doc.get("usageMetadata"))
        output = number(usage.get("candidatesTokenCount"))
        if output is None or output <= tokens:
            return False
        usage["candidatesTokenCount"] = tokens
        if (total := number(usage.get("totalTokenCount"))) is not None:
            usage["totalTokenCount"] = total - (output - tokens)
        usage.pop("candidatesTokensDetails", None)
        return True


def _part(part: Doc) -> Part:
    if isinstance(part.get("functionCall"), dict):
        return Part("call", part, part["functionCall"], "args")
    return Part("text" if _is_text(part) else "other", part, part, "text")
