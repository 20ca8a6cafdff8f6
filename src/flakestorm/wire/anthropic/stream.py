"""Changing what a streamed Anthropic Messages reply says, by the rules of `anthropic_edit`."""

from __future__ import annotations

from collections.abc import Iterator

from flakestorm.wire.anthropic.edit import ANSWERS, Limit, is_a
from flakestorm.wire.base import Edit
from flakestorm.wire.editing import Change, Holding, redone, spread
from flakestorm.wire.numbering import Numbers
from flakestorm.wire.shape import Doc, dump, number, obj, parse, string
from flakestorm.wire.sse import Event, encode

__all__ = ["MessagesRewriter"]

_SAID_IN = {("text", "text_delta"): "text", ("tool_use", "input_json_delta"): "partial_json"}
_CLOSING = ("message_stop", "message_start", "ping", "error")


_Item = tuple[Event, Doc | None]


class MessagesRewriter(Holding[Doc | None]):
    """Edits one stream; see `editing.Rewriter`."""

    def __init__(self, edit: Edit, change: Change) -> None:
        super().__init__(edit, change)
        self._limit, self._numbers = Limit(edit), Numbers()
        self._kinds: dict[int, str] = {}  # of the blocks that have begun
        self._open: int | None = None  # the block that was cut and still has to end
        self._next = 0  # number of the block that would come next

    def event(self, event: Event) -> Iterator[bytes]:
        """What goes out for this event."""
        doc = None if event.data is None else parse(event.data)
        kind = None if doc is None else doc.get("type")
        if not self._holds:
            yield from self._trimmed(event, doc)
        elif self._held or kind in ("message_delta", "message_stop") or (is_a(_block(doc), *ANSWERS)):
            self._held.append((event, doc))
            if kind in ("message_stop", "error"):
                yield from self.end()
        else:
            if doc is not None and kind == "content_block_start":
                self._next = _index(doc) + 1
            yield from self._trimmed(event, doc)

    def _mapped(self, held: list[_Item]) -> list[_Item]:
        said = _text_deltas(held)
        old = "".join(said)
        if self._edit.text is None or not held or (new := self._edit.text(old)) == old:
            return held
        self._change.mark()
        starts = [at for at, (_, doc) in enumerate(held) if _block(doc)]
        spoken = [at for at in starts if is_a(_block(held[at][1]), "text")]
        ends = [at for at, (_, doc) in enumerate(held) if obj(doc).get("type") in ("message_delta", "message_stop")]
        place = (spoken or starts or ends or [len(held)])[0]
        numbers, out = Numbers(), list[_Item]()
        for at, (event, doc) in enumerate(held):
            if at == place and new:
                before = _index(doc) if doc is not None and at in starts else self._next
                out += _text_block(numbers.insert(before), spread(new, max(1, sum(1 for part in said if part))))
            if doc is None or "index" not in doc:
                out.append((event, doc))
                continue
            index = _index(doc)
            if at in starts:
                if at in spoken:
                    numbers.drop(index)
                else:
                    numbers.start(index)
            if index not in numbers.dropped:
                out.append(_renumbered(event, doc, numbers.now(index)))
        if new and place == len(held):
            out += _text_block(numbers.insert(self._next), [new])
        return out

    def _trimmed(self, event: Event, doc: Doc | None) -> Iterator[bytes]:
        kind = None if doc is None else doc.get("type")
        if doc is None:
            if event.data is None or not self._limit.cut:  # a broken event may hold what was cut
                yield event.raw
        elif kind == "content_block_start":
            yield from self._start(event, doc)
        elif kind == "content_block_delta":
            yield from self._delta(event, doc)
        elif kind == "content_block_stop":
            index = _index(doc)
            if index not in self._numbers.dropped and (not self._limit.cut or index == self._open):
                self._open = None if self._limit.cut else self._open
                yield _renumbered(event, doc, self._numbers.now(index))[0].raw
        elif kind == "message_delta" and self._limit.end(obj(doc.get("delta")), doc.get("usage")):
            self._change.mark()
            yield redone(event, doc)
        elif kind == "message_delta" or kind in _CLOSING or not self._limit.cut:
            yield event.raw

    def _start(self, event: Event, doc: Doc) -> Iterator[bytes]:
        index, block = _index(doc), _block(doc)
        kind = self._kinds[index] = string(block.get("type"))
        if self._limit.cut:
            return
        if kind == "tool_use" and self._edit.drop_tool_calls:
            self._numbers.drop(index)
            self._change.mark()
            return
        if kind in ANSWERS and self._edit.max_tokens is not None and not self._limit.begin():
            self._change.mark()
            return
        number_now = self._numbers.start(index)
        if kind == "text" and block.get("text"):
            text = string(block.get("text"))
            if len(taken := self._limit.take(text)) < len(text):
                self._change.mark()
                self._open, block["text"], doc["index"] = index, taken, number_now
                yield redone(event, doc)
                return
        yield _renumbered(event, doc, number_now)[0].raw

    def _delta(self, event: Event, doc: Doc) -> Iterator[bytes]:
        index, delta = _index(doc), obj(doc.get("delta"))
        if self._limit.cut or index in self._numbers.dropped:
            return
        key = _SAID_IN.get((self._kinds.get(index, ""), string(delta.get("type"))))
        if key is not None and self._edit.max_tokens is not None:
            text = string(delta.get(key))
            if len(taken := self._limit.take(text)) < len(text):
                self._change.mark()
                self._open, delta[key], doc["index"] = index, taken, self._numbers.now(index)
                if taken:
                    yield redone(event, doc)
                return
        yield _renumbered(event, doc, self._numbers.now(index))[0].raw


def _index(doc: Doc) -> int:
    return number(doc.get("index")) or 0


def _block(doc: Doc | None) -> Doc:
    """The block that begins with this event, empty for all other events."""
    return obj(doc.get("content_block")) if doc is not None and doc.get("type") == "content_block_start" else {}


def _renumbered(event: Event, doc: Doc, index: int) -> _Item:
    """The event for a block that goes out with this number; untouched if that is the number it came with."""
    if index == _index(doc):
        return event, doc
    doc["index"] = index
    return Event(redone(event, doc), event.data, event.name), doc


def _text_deltas(held: list[_Item]) -> list[str]:
    """The pieces in which the text came."""
    said: list[str] = []
    texts: set[int] = set()
    for _, doc in held:
        if doc is None:
            continue
        if block := _block(doc):
            (texts.add if block.get("type") == "text" else texts.discard)(_index(doc))
            if block.get("type") == "text":
                said.append(string(block.get("text")))
        elif doc.get("type") == "content_block_delta" and _index(doc) in texts:
            delta = obj(doc.get("delta"))
            said.append(string(delta.get("text")) if delta.get("type") == "text_delta" else "")
    return said


def _text_block(index: int, pieces: list[str]) -> list[_Item]:
    """The events of a text block that comes in these pieces."""
    docs: list[Doc] = [
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces
            if piece
        ),
        {"type": "content_block_stop", "index": index},
    ]
    items: list[_Item] = []
    for doc in docs:
        data = dump(doc)
        items.append((Event(encode(data, name=doc["type"]), data, doc["type"]), doc))
    return items
