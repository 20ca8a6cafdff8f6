"""Changing what a streamed Responses reply says, by the rules of `openai_responses_edit`.

A stream says everything several times: in deltas, when a part is done, when an item is done, and in the response that
the last event carries. All of them must agree, because SDKs read one or the other. So what was let out of each text and
of each tool call's arguments is kept, and put into every later event that states it again.
"""

from __future__ import annotations

from collections.abc import Iterator

from flakestorm.wire.base import Edit
from flakestorm.wire.editing import Change, Holding, redone, spread
from flakestorm.wire.numbering import Numbers
from flakestorm.wire.openai_responses.edit import (
    ANSWERS,
    ARGUMENTS,
    ENDS,
    cut_part,
    end,
    is_text,
    message_item,
    say,
    shorten,
)
from flakestorm.wire.openai_responses.refusal import refuse, refuse_event
from flakestorm.wire.shape import Doc, dump, items, number, obj, parse, string
from flakestorm.wire.sse import Event, encode
from flakestorm.wire.tokens import Limit

__all__ = ["ResponsesRewriter"]

_Item = tuple[Event, Doc | None]
_Key = tuple[int, int]
"""A text, by the numbers of its item and part; or the arguments of an item, part -1."""

_ADDED, _DONE = "response.output_item.added", "response.output_item.done"
_PART_ADDED, _PART_DONE = "response.content_part.added", "response.content_part.done"
_TEXT_DELTA, _TEXT_DONE = "response.output_text.delta", "response.output_text.done"
_DELTAS = (_TEXT_DELTA, "response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_STATED_IN = {  # events that state the whole of what their deltas said, and where
    _TEXT_DONE: "text",
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}


class ResponsesRewriter(Holding[Doc | None]):
    """Edits one stream; see `editing.Rewriter`."""

    def __init__(self, edit: Edit, change: Change) -> None:
        super().__init__(edit, change)
        self._limit, self._numbers = Limit(edit.max_tokens), Numbers()
        self._said: dict[_Key, list[str]] = {}  # what was let out
        self._open: int | None = None  # the item that was cut and still has to end
        self._new: str | None = None  # the mapped text
        self._response: Doc = {}  # as the stream stated it first
        self._streamed = False  # whether the world streamed any item
        self._next = 0  # number of the item that would come next
        self._sequence = -1  # number of the last event that went out, where events have numbers
        self._renumbers = False

    def event(self, event: Event) -> Iterator[bytes]:
        """What goes out for this event."""
        doc = None if event.data is None else parse(event.data)
        kind = "" if doc is None else string(doc.get("type"))
        if doc is not None and not self._response:
            self._response = obj(doc.get("response"))
        self._streamed = self._streamed or kind == _ADDED
        if not self._holds:
            yield from self._trimmed(event, doc)
        elif self._held or kind in ENDS or _begun(doc).get("type") in ANSWERS:
            self._held.append((event, doc))
            if kind in ENDS or kind == "error":
                yield from self.end()
        else:
            if kind == _ADDED:
                self._next = _index(doc) + 1
            yield from self._trimmed(event, doc)

    def end(self) -> Iterator[bytes]:
        """What was held back for its text, mapped."""
        held, self._held, self._holds = self._held, [], False
        refuses = self._edit.finish == "refusal"
        for event, doc in self._mapped(held):
            if refuses and self._new is not None and doc is not None and refuse_event(doc):
                data = dump(doc)
                event = Event(encode(data, name=doc["type"]), data, doc["type"])
            yield from self._trimmed(event, doc)

    # Mapping a text.

    def _mapped(self, held: list[_Item]) -> list[_Item]:
        texts = _texts(held)
        old = "".join(piece for pieces in texts.values() for _, piece in pieces)
        if self._edit.text is None or not held or (new := self._edit.text(old)) == old:
            return held
        if not texts:
            return self._with_message(held, new)
        self._change.mark()
        self._new = new
        first, *others = texts
        stated = {first: new, **dict.fromkeys(others, "")}
        deltas = [doc for at, _ in texts[first] if (doc := held[at][1]) is not None and doc["type"] == _TEXT_DELTA]
        for doc, piece in zip(deltas, spread(new, max(1, len(deltas))), strict=False):
            doc["delta"] = piece
        for doc in (held[at][1] for key in others for at, _ in texts[key]):
            if doc is not None and doc["type"] == _TEXT_DELTA:
                doc["delta"] = ""
        out: list[_Item] = []
        for event, doc in held:
            if doc is not None and _restates(doc, stated):
                out.append((Event(redone(event, doc), event.data, event.name), doc))
            elif doc is None or doc.get("type") != "response.output_text.annotation.added":
                out.append((event, doc))
            else:
                self._renumbers = True
        return out

    def _with_message(self, held: list[_Item], text: str) -> list[_Item]:
        """The events with a message put in before the first item, or before the end."""
        kinds = [_begun(doc).get("type") if doc else None for _, doc in held]
        starts = [at for at, kind in enumerate(kinds) if kind in ANSWERS]
        ends = [at for at, (_, doc) in enumerate(held) if doc is not None and doc.get("type") in ENDS]
        if not starts and any(obj(held[at][1]).get("type") not in ENDS[:2] for at in ends):
            return held  # it failed before it said anything
        self._change.mark()
        self._new = text
        place = (starts or ends or [len(held)])[0]
        before = _index(held[place][1]) if starts else self._next
        numbers, out = Numbers(), list[_Item]()
        for at, (event, doc) in enumerate(held):
            if at == place:
                out += self._message(numbers.insert(before), text)
            if doc is not None and "output_index" in doc:
                if doc.get("type") == _ADDED:
                    numbers.start(_index(doc))
                doc["output_index"] = numbers.now(_index(doc))
                event = Event(redone(event, doc), event.data, event.name)
            out.append((event, doc))
        return out if place < len(held) else [*out, *self._message(numbers.insert(before), text)]

    def _message(self, index: int, text: str) -> list[_Item]:
        """The events of a message that says this."""
        item = message_item(self._response, text)
        part = item["content"][0]
        place: Doc = {"item_id": item["id"], "output_index": index, "content_index": 0}
        docs: list[Doc] = [
            {"type": _ADDED, "output_index": index, "item": {**item, "status": "in_progress", "content": []}},
            {"type": _PART_ADDED, **place, "part": {**part, "text": ""}},
            {"type": _TEXT_DELTA, **place, "delta": text, "logprobs": []},
            {"type": _TEXT_DONE, **place, "text": text, "logprobs": []},
            {"type": _PART_DONE, **place, "part": part},
            {"type": _DONE, "output_index": index, "item": item},
        ]
        self._renumbers = True
        made: list[_Item] = []
        for doc in docs:
            if self._sequence >= 0:
                doc["sequence_number"] = 0  # the right one is known when it goes out
            data = dump(doc)
            made.append((Event(encode(data, name=doc["type"]), data, doc["type"]), parse(data)))
        return made

    # Letting out what may be said.

    def _trimmed(self, event: Event, doc: Doc | None) -> Iterator[bytes]:
        if doc is None:
            if event.data is None or not self._limit.cut:  # a broken event may hold what was cut
                yield event.raw
            return
        kept, altered = self._kept(doc, string(doc.get("type")))
        if not kept:
            self._renumbers = self._renumbers or "sequence_number" in doc
            self._change.mark()
            return
        if altered:
            self._change.mark()
        sequence = number(doc.get("sequence_number"))
        if sequence is not None:
            due = self._sequence + 1 if self._renumbers else sequence
            altered |= due != sequence
            doc["sequence_number"] = self._sequence = due
        if not altered:
            yield event.raw
        elif event.name and (kind := string(doc.get("type"))) and event.name != kind:
            yield encode(dump(doc), name=kind)
        else:
            yield redone(event, doc)

    def _kept(self, doc: Doc, kind: str) -> tuple[bool, bool]:
        """Whether an event goes out, and whether it had to be altered."""
        if kind in ENDS:
            return True, self._ended(doc, kind)
        if "output_index" not in doc:
            return True, False
        index = _index(doc)
        if kind == _ADDED and not self._begins(index, _begun(doc)):
            return False, True
        if index in self._numbers.dropped or (self._limit.cut and index != self._open):
            return False, True
        now = self._numbers.now(index)
        moved, doc["output_index"] = now != index, now
        if self._edit.max_tokens is None:
            return True, moved
        kept, altered = self._fits(doc, kind, index)
        return kept, altered or moved

    def _begins(self, index: int, item: Doc) -> bool:
        """Whether this item of the answer may begin."""
        kind = string(item.get("type"))
        if kind in ARGUMENTS and self._edit.drop_tool_calls:
            self._numbers.drop(index)
            return False
        if self._limit.cut or (kind in ANSWERS and self._edit.max_tokens is not None and not self._limit.begin()):
            return False
        self._numbers.start(index)
        return True

    def _fits(self, doc: Doc, kind: str, index: int) -> tuple[bool, bool]:
        """Whether anything of an event may still be said; shortens it to what may."""
        was_cut = self._limit.cut
        key = (index, (number(doc.get("content_index")) or 0) if "content_index" in doc else -1)
        if kind in _DELTAS:
            said = string(doc.get("delta"))
            taken = "" if was_cut else self._take(key, said)
            if len(taken) == len(said) and not was_cut:
                return True, False
            self._open, doc["delta"] = index, taken
            if doc.get("logprobs"):
                doc["logprobs"] = []
            return bool(taken), True
        if kind in _STATED_IN:
            return not was_cut or key in self._said, self._restate(doc, _STATED_IN[kind], key)
        if kind == _PART_ADDED:
            return not was_cut, False
        if kind == _PART_DONE:
            return not was_cut or key in self._said, is_text(doc.get("part")) and self._restate(
                doc["part"], "text", key
            )
        if kind == _DONE:
            return True, self._restate_item(obj(doc.get("item")), index)
        return not was_cut, False

    def _take(self, key: _Key, text: str) -> str:
        if key not in self._said:
            self._limit.meter.part()
        taken = self._limit.take(text)
        self._said.setdefault(key, []).append(taken)
        return taken

    def _restate(self, holder: Doc, key: str, said_as: _Key) -> bool:
        """Make an event state what was let out; where nothing was said before, this is when it is said."""
        stated = string(holder.get(key))
        said = "".join(self._said[said_as]) if said_as in self._said else self._take(said_as, stated)
        if self._limit.cut and self._open is None:
            self._open = said_as[0]
        if not self._limit.cut or len(said) >= len(stated):
            return False
        if key == "text":
            cut_part(holder, said)
        else:
            holder[key] = said
        return True

    def _restate_item(self, item: Doc, index: int) -> bool:
        kind = string(item.get("type"))
        if kind not in ANSWERS:
            return False
        if kind in ARGUMENTS:
            altered = self._restate(item, ARGUMENTS[kind], (index, -1))
        else:
            kept, altered = [], False
            for at, part in enumerate(items(item.get("content"))):
                if is_text(part) and not (self._limit.cut and (index, at) not in self._said):
                    altered |= self._restate(part, "text", (index, at))
                    kept.append(part)
                elif not self._limit.cut:
                    kept.append(part)
            altered |= len(kept) < len(items(item.get("content")))
            item["content"] = kept
        if self._limit.cut and self._open == index and item.get("status"):
            item["status"] = "incomplete"
            altered = True
        return altered

    def _ended(self, doc: Doc, kind: str) -> bool:
        """Make the response at the end say what was said; tells whether it had to be altered."""
        response = obj(doc.get("response"))
        states = bool(response.get("output")) or not self._streamed  # some leave out in the end what they streamed
        altered = self._new is not None and states and say(response, self._new)
        if altered and self._edit.finish == "refusal":
            refuse(response)
        limit = Limit(self._edit.max_tokens)
        altered |= shorten(response, self._edit, limit)
        self._limit.cut |= limit.cut  # some say in the end what they never streamed
        altered |= end(response, self._edit, self._limit)
        if altered and kind in ENDS[:2]:
            doc["type"] = f"response.{response.get('status')}"
        return altered


def _index(doc: Doc | None) -> int:
    return number(obj(doc).get("output_index")) or 0


def _begun(doc: Doc | None) -> Doc:
    """The item that begins with this event, empty for all other events."""
    return obj(doc.get("item")) if doc is not None and doc.get("type") == _ADDED else {}


def _texts(held: list[_Item]) -> dict[_Key, list[tuple[int, str]]]:
    """The texts in these events, in order: position and piece of each delta; or, without any, of what is stated."""
    texts: dict[_Key, list[tuple[int, str]]] = {}
    for at, (_, doc) in enumerate(held):
        if doc is None:
            continue
        kind, key = doc.get("type"), (_index(doc), number(doc.get("content_index")) or 0)
        if kind == _TEXT_DELTA:
            texts.setdefault(key, []).append((at, string(doc.get("delta"))))
        elif kind == _TEXT_DONE and key not in texts:
            texts[key] = [(at, string(doc.get("text")))]
        elif kind == _DONE and obj(doc.get("item")).get("type") == "message":
            for place, part in enumerate(items(doc["item"].get("content"))):
                if is_text(part):
                    texts.setdefault((_index(doc), place), [(at, string(part.get("text")))])
    return texts


def _restates(doc: Doc, stated: dict[_Key, str]) -> bool:
    """Put a mapped text wherever it is stated again; tells whether this event had to be altered."""
    kind, key = doc.get("type"), (_index(doc), number(doc.get("content_index")) or 0)
    if kind == _TEXT_DELTA:
        if doc.get("logprobs"):
            doc["logprobs"] = []
        return True
    if kind == _TEXT_DONE:
        return _put(doc, stated.get(key))
    if kind == _PART_DONE and is_text(doc.get("part")):
        return _put(doc["part"], stated.get(key))
    if kind == _DONE and obj(doc.get("item")).get("type") == "message":
        parts = enumerate(items(doc["item"].get("content")))
        put = [_put(part, stated.get((key[0], at))) for at, part in parts if is_text(part)]
        return True in put
    return False


def _put(holder: Doc, text: str | None) -> bool:
    if text is None:
        return False
    holder["text"] = text
    for key in ("annotations", "logprobs"):
        if holder.get(key):
            holder[key] = []
    return True
