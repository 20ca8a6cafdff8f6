"""Changing replies whose stream is a sequence of documents of one shape.

Gemini, Ollama and Bedrock's Converse answer with a document that holds parts: text, tool calls, and others. Where they
stream, each chunk is such a document again, with the parts that are new. So a whole reply is a stream of one chunk, and
one `SnapshotRewriter` edits both. A wire brings an `Answers` that finds the parts in its documents.

Truncation cuts the answer part by part: text, then the arguments of the tool calls. Arguments are objects here, so cut
ones are what a parser makes of their first part: the members that were complete. A stream passes untouched and at once
up to the cut; after it only the chunk in which the world itself ends goes on, saying so for length and nothing else.

Mapping text needs the whole text. So a stream is held back from its first text or tool call until its end, and the new
text is spread over the parts the old one came in.

Parts of other kinds (thoughts, images, code that the provider ran) are never touched; only those after a cut are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from flakestorm.wire.base import Edit, Finish
from flakestorm.wire.editing import Change, Holding, spread
from flakestorm.wire.frames import Frame
from flakestorm.wire.shape import Doc, dump, number, parse, parse_prefix, string
from flakestorm.wire.sse import Event
from flakestorm.wire.tokens import TokenMeter

__all__ = ["Answer", "Answers", "Part", "SnapshotRewriter", "limit_usage", "rewrite_whole"]


@dataclass(slots=True, eq=False)
class Part:
    """A part of an answer.

    Args:
        kind: what it is; only texts and calls are ever changed.
        entry: the object that is this part; parts are told apart by it.
        holder: the object in it (often itself) that has, under `key`, the text or the tool call's arguments.
    """

    kind: Literal["text", "call", "other"]
    entry: Doc
    holder: Doc
    key: str
    begins: bool = True
    """False for what goes on with a tool call that began before: it goes out whole, or not at all."""

    @property
    def said(self) -> str:
        """What the model said here: words, or arguments as JSON; empty arguments are no words."""
        value = self.holder.get(self.key)
        if self.kind == "call":
            return value if isinstance(value, str) else dump(value).decode() if value else ""
        return string(value)

    def put(self, said: str) -> None:
        """Make this part say something else; of arguments the beginning."""
        if self.kind == "call" and not isinstance(self.holder.get(self.key), str):
            self.holder[self.key] = parse_prefix(said)
        else:
            self.holder[self.key] = said


class Answer(Protocol):
    """One answer (one candidate) as one document states it, or adds to it."""

    index: int

    @property
    def parts(self) -> list[Part]:
        """Everything it holds, in order."""
        ...

    def keep(self, parts: Sequence[Part]) -> None:
        """Leave only these of its parts in the document."""
        ...

    def say(self, text: str) -> None:
        """Put in this text, before any tool call."""
        ...

    @property
    def finish(self) -> str | None:
        """The provider's word for why it ended; None where this document does not end it."""
        ...

    @finish.setter
    def finish(self, word: str) -> None: ...


class Answers(Protocol):
    """What a wire knows about its documents."""

    @property
    def words(self) -> Mapping[Finish, str]:
        """The provider's words for the ways to end; a way that it does not have is left out."""
        ...

    @property
    def malformed(self) -> str | None:
        """Its word for an answer that asked for a tool in a way nobody could read; None if that becomes text."""
        ...

    def __call__(self, doc: Doc) -> Sequence[Answer]:
        """The answers in a document; none in one that is no reply."""
        ...

    def limit(self, doc: Doc, tokens: int) -> bool:
        """Let a document count at most this many output tokens, reasoning aside; tells whether that changed it."""
        ...


def limit_usage(usage: Doc, output: str, total: str, tokens: int) -> bool:
    """Let a count of tokens say at most this many, and the sum it is in as much less; tells whether that changed it.

    Args:
        usage: holds both.
        output, total: their keys.
    """
    said = number(usage.get(output))
    if said is None or said <= tokens:
        return False
    usage[output] = tokens
    if (whole := number(usage.get(total))) is not None:
        usage[total] = whole - (said - tokens)
    return True


def rewrite_whole(body: bytes, edit: Edit, change: Change, answers: Answers) -> bytes:
    """Edit a reply that is one document. Anything else comes back as it was, as does one with nothing to alter."""
    rewriter = SnapshotRewriter(edit, change, answers)
    return b"".join([*rewriter.event(Frame(body, body.strip())), *rewriter.end()])


class SnapshotRewriter(Holding[Doc | None]):
    """Edits one stream; see `editing.Rewriter`."""

    def __init__(self, edit: Edit, change: Change, answers: Answers) -> None:
        super().__init__(edit, change)
        self._answers = answers
        self._cutters: dict[int, _Cutter] = {}

    def event(self, event: Event) -> Iterator[bytes]:
        """What goes out for this event."""
        doc = None if event.data is None else parse(event.data)
        if self._holds and (self._held or self._speaks(doc)):
            self._held.append((event, doc))
        else:
            yield from self._trimmed(event, doc)

    def _speaks(self, doc: Doc | None) -> bool:
        """Whether a document carries anything of an answer: text, a tool call, or its end."""
        return doc is not None and any(
            answer.finish is not None or any(part.kind == "call" or _is_text(part) for part in answer.parts)
            for answer in self._answers(doc)
        )

    def _mapped(self, held: list[tuple[Event, Doc | None]]) -> list[tuple[Event, Doc | None]]:
        if self._edit.text is None:
            return held
        changed: set[int] = set()
        places: dict[int, list[tuple[int, Answer]]] = {}  # answer -> position in held, what it states there
        for at, (_, doc) in enumerate(held):
            for answer in self._answers(doc) if doc is not None else ():
                places.setdefault(answer.index, []).append((at, answer))
        for stated in places.values():
            spoken = [(at, answer, part) for at, answer in stated for part in answer.parts if _is_text(part)]
            old = "".join(part.said for _, _, part in spoken)
            if (new := self._edit.text(old)) == old:
                continue
            if not spoken:
                at, answer = stated[0]
                answer.say(new)
                changed.add(at)
            for (at, _, part), piece in zip(spoken, spread(new, max(1, len(spoken))), strict=False):
                part.put(piece)
                changed.add(at)
            for _, answer, part in spoken:
                if not part.said:
                    answer.keep([other for other in answer.parts if other.said or other.kind != "text"])
        if changed:
            self._change.mark()
        return [
            (_restated(event, doc), doc) if at in changed and doc is not None else (event, doc)
            for at, (event, doc) in enumerate(held)
        ]

    def _trimmed(self, event: Event, doc: Doc | None) -> Iterator[bytes]:
        if doc is None:
            if event.data is None or not self._cut:  # a broken frame may hold what was cut
                yield event.raw
            return
        answers = self._answers(doc)
        altered, over = False, bool(answers)
        for answer in answers:
            cutter = self._cutters.setdefault(answer.index, _Cutter(self._edit, self._answers.words))
            over = over and cutter.cut and answer.finish is None
            altered |= cutter.trim(answer)
            altered |= answer.finish is not None and cutter.end(answer)
        if self._cut:
            tokens = sum(cutter.meter.count for cutter in self._cutters.values())
            altered |= self._answers.limit(doc, tokens)
        if altered or over:
            self._change.mark()
        if not over:
            yield (_restated(event, doc) if altered else event).raw

    @property
    def _cut(self) -> bool:
        return any(cutter.cut for cutter in self._cutters.values())


class _Cutter:
    """Cuts one answer, over as many documents as it comes in."""

    def __init__(self, edit: Edit, words: Mapping[Finish, str]) -> None:
        self._edit, self._words = edit, words
        self.meter = TokenMeter(edit.max_tokens)
        self.cut = False
        self._in_text = False

    def trim(self, answer: Answer) -> bool:
        """Leave in an answer only what may be said; tells whether it was altered."""
        parts = answer.parts
        kept: list[Part] = []
        for part in parts:
            if self.cut:
                break
            if part.kind == "call" and self._edit.drop_tool_calls:
                continue
            if self._edit.max_tokens is None or part.kind == "other" or self._fits(part):
                kept.append(part)
        if len(kept) < len(parts):
            answer.keep(kept)
        return self.cut or len(kept) < len(parts)

    def end(self, answer: Answer) -> bool:
        """Say why a finished answer ended; tells whether that is news."""
        ending = self._edit.ending(cut=self.cut)
        if ending is None or answer.finish == self._words[ending]:
            return False
        answer.finish = self._words[ending]
        return True

    def _fits(self, part: Part) -> bool:
        """Whether anything of this part may still be said; shortens it to what may."""
        said = part.said
        if not part.begins:
            self.cut = len(self.meter.take(said)) < len(said)
            return not self.cut
        if part.kind == "call" or (said and not self._in_text):
            self.meter.part()
            self._in_text = part.kind == "text"
        if part.kind == "call" and self.meter.full:
            self.cut = True
            return False
        taken = self.meter.take(said)
        if len(taken) < len(said):
            self.cut = True
            part.put(taken)
        return part.kind == "call" or bool(taken) or not said


def _is_text(part: Part) -> bool:
    return part.kind == "text" and bool(part.said)


def _restated(event: Event, doc: Doc) -> Event:
    """The event that now says this document."""
    try:
        return event.with_data(dump(doc))
    except RecursionError:  # JSON nested so deep that it can be read but not written again
        return event
