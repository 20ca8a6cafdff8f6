"""Changing what an Anthropic Messages reply says.

Truncation cuts the answer, block by block: text, then the input of `tool_use` blocks. A stream passes untouched and at
once up to the cut; after it only the end of the open block and the world's own closing events go on, saying
`max_tokens`. A cut tool input stays a JSON prefix in a stream. In a whole reply it must be an object, so it is what a
parser makes of that prefix: the members that were complete.

Mapping text needs the whole text. So a stream is held back from its first text or tool block until its end; the text
blocks give way to one block, in the place of the first, that comes in as many deltas as the old text did. An empty
text leaves no block at all, because the API refuses empty text blocks when the agent sends its history back.

Thinking, signatures, and the tools Anthropic runs itself are never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from flakestorm.wire.base import Edit
from flakestorm.wire.editing import Change, redone, spread
from flakestorm.wire.shape import Doc, dump, number, obj, parse, string
from flakestorm.wire.sse import Event, encode
from flakestorm.wire.tokens import TokenMeter

__all__ = ["MessagesRewriter", "rewrite_body"]

_FINISH = {"length": "max_tokens", "stop": "end_turn"}
_ANSWERS = ("text", "tool_use")
_SAID_IN = {("text", "text_delta"): "text", ("tool_use", "input_json_delta"): "partial_json"}
_CLOSING = ("message_stop", "message_start", "ping", "error")


def rewrite_body(body: bytes, edit: Edit, change: Change) -> bytes:
    """Edit a whole reply. Anything that is not one comes back as it was, as does one with nothing to alter."""
    doc = parse(body)
    if doc is None or doc.get("type") != "message" or not isinstance(doc.get("content"), list):
        return body
    limit = _Limit(edit)
    blocks: list[Any] = doc["content"]
    if edit.text is not None:
        blocks = _with_text(blocks, edit)
    if edit.drop_tool_calls:
        blocks = [block for block in blocks if not _is(block, "tool_use")]
    if edit.max_tokens is not None:
        blocks = _shortened(blocks, limit)
    altered = limit.cut or (blocks is not doc["content"] and blocks != doc["content"])
    doc["content"] = blocks
    altered |= limit.end(doc, doc.get("usage"))
    if not altered:
        return body
    out = dump(doc)
    change.mark()
    return out


def _is(block: object, *kinds: str) -> bool:
    return isinstance(block, dict) and block.get("type") in kinds


def _with_text(blocks: list[Any], edit: Edit) -> list[Any]:
    """The blocks with their text mapped; the same list if that changes nothing."""
    spoken = [at for at, block in enumerate(blocks) if _is(block, "text")]
    old = "".join(string(blocks[at].get("text")) for at in spoken)
    new = old if edit.text is None else edit.text(old)
    if new == old:
        return blocks
    answers = [at for at, block in enumerate(blocks) if _is(block, *_ANSWERS)]
    place = (spoken or answers or [len(blocks)])[0]
    said = [{"type": "text", "text": new}] if new else []
    return [*blocks[:place], *said, *(block for block in blocks[place:] if not _is(block, "text"))]


def _shortened(blocks: list[Any], limit: _Limit) -> list[Any]:
    kept: list[Any] = []
    for block in blocks:
        if _is(block, *_ANSWERS):
            if not limit.begin():
                break
            if block["type"] == "text":
                block["text"] = limit.take(string(block.get("text")))
            elif block.get("input"):
                said = dump(block["input"]).decode()
                if len(taken := limit.take(said)) < len(said):
                    block["input"] = _readable(taken)
        kept.append(block)
        if limit.cut:
            break
    return kept


def _readable(prefix: str) -> Doc:
    """The members of a cut JSON object that are complete."""
    try:
        return obj(from_json(prefix, allow_partial=True))
    except ValueError:
        return {}


class _Limit:
    """Counts the answer up to its limit, and says how it ended."""

    def __init__(self, edit: Edit) -> None:
        self._edit = edit
        self.meter = TokenMeter(edit.max_tokens)
        self.cut = False

    def begin(self) -> bool:
        """Whether another block of the answer may begin."""
        self.meter.part()
        self.cut = self.cut or self.meter.full
        return not self.cut

    def take(self, text: str) -> str:
        """As much of the text as may be said."""
        taken = self.meter.take(text)
        self.cut = self.cut or len(taken) < len(text)
        return taken

    def end(self, message: Doc, usage: object) -> bool:
        """Say why it ended, in a message or the delta of one, and how much it was; tells whether that is news."""
        word = "length" if self.cut else None if self._edit.max_tokens is not None else self._edit.finish
        altered = False
        if word is not None and message.get("stop_reason") != _FINISH[word]:
            message["stop_reason"], message["stop_sequence"] = _FINISH[word], None
            if message.get("stop_details"):
                message["stop_details"] = None
            altered = True
        output = number(obj(usage).get("output_tokens"))
        if self.cut and output is not None and output > self.meter.count:
            obj(usage)["output_tokens"] = self.meter.count
            altered = True
        return altered


class _Numbers:
    """Block numbers, which must stay without gaps when blocks are left out or put in."""

    def __init__(self) -> None:
        self._shift = 0
        self._shifts: dict[int, int] = {}
        self.dropped: set[int] = set()

    def start(self, index: int) -> int:
        """A block begins: the number it goes out with."""
        self.dropped.discard(index)
        self._shifts[index] = self._shift
        return index + self._shift

    def drop(self, index: int) -> None:
        """A block begins that is left out."""
        self.dropped.add(index)
        self._shift -= 1

    def insert(self, before: int) -> int:
        """The number of a block put in before this one."""
        self._shift += 1
        return before + self._shift - 1

    def now(self, index: int) -> int:
        """The number a block that has begun goes out with."""
        return index + self._shifts.get(index, 0)


_Item = tuple[Event, Doc | None]


class MessagesRewriter:
    """Edits one stream; see `editing.Rewriter`."""

    def __init__(self, edit: Edit, change: Change) -> None:
        self._edit, self._change = edit, change
        self._limit, self._numbers = _Limit(edit), _Numbers()
        self._kinds: dict[int, str] = {}  # of the blocks that have begun
        self._open: int | None = None  # the block that was cut and still has to end
        self._held: list[_Item] = []
        self._holds = edit.text is not None
        self._next = 0  # number of the block that would come next

    def event(self, event: Event) -> Iterator[bytes]:
        """What goes out for this event."""
        doc = None if event.data is None else parse(event.data)
        kind = None if doc is None else doc.get("type")
        if not self._holds:
            yield from self._trimmed(event, doc)
        elif self._held or kind in ("message_delta", "message_stop") or (_is(_block(doc), *_ANSWERS)):
            self._held.append((event, doc))
            if kind in ("message_stop", "error"):
                yield from self.end()
        else:
            if doc is not None and kind == "content_block_start":
                self._next = _index(doc) + 1
            yield from self._trimmed(event, doc)

    def end(self) -> Iterator[bytes]:
        """What was held back for its text, mapped."""
        held, self._held, self._holds = self._held, [], False
        for event, doc in self._mapped(held):
            yield from self._trimmed(event, doc)

    def _mapped(self, held: list[_Item]) -> list[_Item]:
        said = _text_deltas(held)
        old = "".join(said)
        if self._edit.text is None or not held or (new := self._edit.text(old)) == old:
            return held
        self._change.mark()
        starts = [at for at, (_, doc) in enumerate(held) if _block(doc)]
        spoken = [at for at in starts if _is(_block(held[at][1]), "text")]
        ends = [at for at, (_, doc) in enumerate(held) if obj(doc).get("type") in ("message_delta", "message_stop")]
        place = (spoken or starts or ends or [len(held)])[0]
        numbers, out = _Numbers(), list[_Item]()
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
        if kind in _ANSWERS and self._edit.max_tokens is not None and not self._limit.begin():
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
