"""Changing what a streamed Converse reply says, by the rules of `snapshots` as far as a stream of blocks allows.

A block of text begins with its first delta, and a tool call with an event of its own. Truncation cuts the answer, block
by block: text, then the input of tool calls, which stays a JSON prefix. A stream passes untouched and at once up to the
cut; after it only the end of the open block and the world's own closing messages go on, saying `max_tokens`.

Mapping text needs the whole text. So a stream is held back from its first text or tool call until the message stops,
and the new text is spread over the deltas the old one came in; a block without words goes altogether. Where there was
no text, a block of it is put in before the first tool call.

Reasoning, signatures and the tools Amazon runs itself are never touched. Every message that changes gets new lengths
and checksums, and keeps its headers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flakestorm.wire.base import Edit, Finish, ToolCall
from flakestorm.wire.calls import CallForm, Mapped
from flakestorm.wire.editing import Change, Holding, redone, spread
from flakestorm.wire.eventstream import Message, encode
from flakestorm.wire.numbering import Numbers
from flakestorm.wire.shape import Doc, dump, number, obj, parse, string
from flakestorm.wire.snapshots import limit_usage
from flakestorm.wire.sse import Event
from flakestorm.wire.tokens import Limit

__all__ = ["ConverseRewriter", "is_call", "with_stream"]

_START, _DELTA, _STOP, _END = "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"
_Item = tuple[Event, Doc]


def is_call(block: Doc) -> bool:
    """Whether this asks the agent for a tool; Amazon marks those that it runs itself."""
    return isinstance(block.get("toolUse"), dict) and block["toolUse"].get("type") != "server_tool_use"


class ConverseRewriter(Holding[Doc]):
    """Edits one stream; see `editing.Rewriter`.

    Args:
        words: the provider's words for the ways to end.
    """

    def __init__(self, edit: Edit, change: Change, words: Mapping[Finish, str]) -> None:
        super().__init__(edit, change)
        self._words = words
        self._limit, self._numbers = Limit(edit.max_tokens), Numbers()
        self._calls: dict[int, bool] = {}  # of the blocks that have begun: whether each is a call of the agent's
        self._open: int | None = None  # the block that was cut and still has to end
        self._unsaid: int | None = None  # the block that began last without saying what it is
        self._gone: set[int] = set()  # blocks of which the new text left no words
        self._next = 0  # number of the block that would come next

    def event(self, event: Event) -> Iterator[bytes]:
        """What goes out for this message."""
        doc = {} if event.data is None else parse(event.data) or {}
        if not self._holds:
            yield from self._trimmed(event, doc)
        elif self._held or event.name == _END or _text(event, doc) is not None or is_call(obj(doc.get("start"))):
            self._held.append((event, doc))
            if event.name == _END or event.name.endswith("Exception"):
                yield from self.end()
        else:
            self._next = max(self._next, _index(doc) + 1) if "contentBlockIndex" in doc else self._next
            yield from self._trimmed(event, doc)

    def _mapped(self, held: list[_Item]) -> list[_Item]:
        spoken = [(at, said) for at, item in enumerate(held) if (said := _text(*item)) is not None]
        old = "".join(said for _, said in spoken)
        if self._edit.text is None or not held or (new := self._edit.text(old)) == old:
            return held
        self._change.mark()
        if not spoken:
            return self._with_text(held, new)
        left: set[int] = set()
        gone: set[int] = set()
        for (at, _), piece in zip(spoken, spread(new, len(spoken)), strict=False):
            event, doc = held[at]
            doc["delta"]["text"] = piece
            held[at] = _again(event, doc)
            (left if piece else gone).add(_index(doc))
        for at, _ in spoken[len(spread(new, len(spoken))) :]:
            held[at][1]["delta"]["text"] = ""
            gone.add(_index(held[at][1]))
        self._gone = gone - left
        return [item for item in held if _text(*item) != ""]

    def _with_text(self, held: list[_Item], text: str) -> list[_Item]:
        """The messages with a block of text before the first tool call, or before the end."""
        starts = [at for at, (_, doc) in enumerate(held) if is_call(obj(doc.get("start")))]
        place = next(iter(starts), next((at for at, (event, _) in enumerate(held) if event.name == _END), len(held)))
        index = _index(held[place][1]) if starts else max([self._next, *(_index(doc) + 1 for _, doc in held[:place])])
        after = list[_Item]()
        for event, doc in held[place:]:
            if "contentBlockIndex" in doc and _index(doc) >= index:
                doc["contentBlockIndex"] = _index(doc) + 1
                event = Message(redone(event, doc), event.data, event.name)
            after.append((event, doc))
        said = {"contentBlockIndex": index, "delta": {"text": text}}
        return [*held[:place], _made(_DELTA, said), _made(_STOP, {"contentBlockIndex": index}), *after]

    def _trimmed(self, event: Event, doc: Doc) -> Iterator[bytes]:
        if event.name == _END:
            ending = self._edit.ending(cut=self._limit.cut)
            if ending is not None and doc.get("stopReason") != self._words[ending]:
                doc["stopReason"] = self._words[ending]
                self._change.mark()
                yield redone(event, doc)
            else:
                yield event.raw
        elif event.name == "metadata" and self._limit.cut:
            counted = limit_usage(obj(doc.get("usage")), "outputTokens", "totalTokens", self._limit.meter.count)
            yield redone(event, doc) if counted else event.raw
        elif "contentBlockIndex" in doc:
            yield from self._block(event, doc, _index(doc))
        elif event.data is None or doc or not self._limit.cut:  # a broken message may hold what was cut
            yield event.raw

    def _block(self, event: Event, doc: Doc, index: int) -> Iterator[bytes]:
        if index in self._gone:
            if event.name == _STOP:
                self._numbers.drop(index)
        elif self._may_go(event, doc, index):
            if index not in self._numbers.dropped:
                yield from self._said(event, doc, index)
        else:
            self._change.mark()

    def _may_go(self, event: Event, doc: Doc, index: int) -> bool:
        if event.name in (_START, _DELTA) and not self._begun(event, doc, index):
            return False
        return not self._limit.cut or (event.name == _STOP and index == self._open)

    def _begun(self, event: Event, doc: Doc, index: int) -> bool:
        """Whether this message may go out as far as its block is concerned, which may begin with it."""
        if index in self._calls or index in self._numbers.dropped:
            return index not in self._numbers.dropped
        if event.name == _START and not doc.get("start") and not self._limit.cut:
            self._unsaid = index  # what it is, its first delta tells
            self._numbers.start(index)
            return True
        call = is_call(obj(doc.get("start")))
        if call and self._edit.drop_tool_calls:
            self._numbers.drop(index)
            return False
        answers = call or _text(event, doc) is not None
        if self._limit.cut or (answers and self._edit.max_tokens is not None and not self._limit.begin()):
            self._open = index if index == self._unsaid and self._open is None else self._open
            return False
        if answers:
            self._limit.meter.part()
        self._calls[index] = call
        self._numbers.start(index)
        return True

    def _said(self, event: Event, doc: Doc, index: int) -> Iterator[bytes]:
        now = self._numbers.now(index)
        altered, doc["contentBlockIndex"] = now != index, now
        if event.name == _DELTA and self._edit.max_tokens is not None:
            holder = obj(obj(doc.get("delta")).get("toolUse")) if self._calls.get(index) else obj(doc.get("delta"))
            key = "input" if self._calls.get(index) else "text"
            said = string(holder.get(key))
            if len(taken := self._limit.take(said)) < len(said):
                self._change.mark()
                self._open, holder[key] = index, taken
                if taken:
                    yield redone(event, doc)
                return
        yield redone(event, doc) if altered else event.raw


def with_stream(whole: CallForm) -> CallForm:
    """The form of tool calls in Converse: of whole replies as given, and of streams."""

    def put(docs: Sequence[Doc], to: Mapped) -> set[int]:
        return whole.put(docs, to) if any("output" in doc for doc in docs) else _put(docs, to)

    return CallForm(
        has=lambda doc: is_call(obj(doc.get("start"))), ends=lambda event, _doc: event.name == _END, put=put
    )


def _put(docs: Sequence[Doc], to: Mapped) -> set[int]:
    """Map the tool calls of a stream. One that came without any input stays without."""
    starts = {
        _index(doc): (at, doc["start"]["toolUse"]) for at, doc in enumerate(docs) if is_call(obj(doc.get("start")))
    }
    pieces: dict[int, list[tuple[int, Doc]]] = {}
    for at, doc in enumerate(docs):
        use = obj(obj(doc.get("delta")).get("toolUse"))
        if use and _index(doc) in starts:
            pieces.setdefault(_index(doc), []).append((at, use))
    changed: set[int] = set()
    for index, (at, use) in starts.items():
        said = pieces.get(index, [])
        arguments = "".join(string(piece.get("input")) for _, piece in said)
        call = ToolCall(string(use.get("toolUseId")), string(use.get("name")), arguments or "{}")
        new = to(call)
        if new.name != call.name:
            use["name"] = new.name
            changed.add(at)
        if new.arguments != call.arguments:
            for (place, piece), text in zip(said, spread(new.arguments, max(1, len(said))), strict=False):
                piece["input"] = text
                changed.add(place)
    return changed


def _index(doc: Doc) -> int:
    return number(doc.get("contentBlockIndex")) or 0


def _text(event: Event, doc: Doc) -> str | None:
    """The words of a delta of text; None for everything else."""
    text = obj(doc.get("delta")).get("text") if event.name == _DELTA else None
    return text if isinstance(text, str) else None


def _again(event: Event, doc: Doc) -> _Item:
    return Message(redone(event, doc), event.data, event.name), doc


def _made(kind: str, doc: Doc) -> _Item:
    data = dump(doc)
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return Message(encode(data, headers), data, kind), doc
