"""Changing what a Chat Completions reply says.

Truncation cuts the answer: the text, then the arguments of the tool calls in their order (a tool call that would begin
after the end is left out). Cut arguments stay a JSON prefix, which is what the provider itself sends when tokens run
out. A stream passes untouched and at once up to the cut. After it only the world's own closing events go on, saying
`length` and no more content; so ids, usage and whatever else a provider adds there are still its own.

Mapping text needs the whole text. So a stream is held back from its first content until its end, and the new text is
spread over the events the old one came in.

A text that is a refusal goes where OpenAI has refusals, and nothing is left as content.

Reasoning, refusals of the model's own and audio are never touched. Each choice is edited by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from flakestorm.wire.base import Edit, Finish
from flakestorm.wire.editing import Change, Holding, redone, spread
from flakestorm.wire.openai_chat.parts import Slots, function_of, usages_of
from flakestorm.wire.shape import Doc, dump, number, obj, objects, parse, text_of
from flakestorm.wire.sse import DONE, Event, encode
from flakestorm.wire.tokens import TokenMeter

__all__ = ["ChatRewriter", "rewrite_body"]

_FINISH: dict[Finish, str] = {
    "length": "length",
    "stop": "stop",
    "refusal": "stop",
    "content_filter": "content_filter",
}
_FRAME = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")


def rewrite_body(body: bytes, edit: Edit, change: Change) -> bytes:
    """Edit a whole reply. Anything that is not one comes back as it was, as does one with nothing to alter."""
    doc = parse(body)
    choices = [] if doc is None else [c for c in objects(doc.get("choices")) if isinstance(c.get("message"), dict)]
    if doc is None or not choices:
        return body
    cutters, altered = [_Cutter(edit) for _ in choices], False
    for choice, cutter in zip(choices, cutters, strict=True):
        message = choice["message"]
        if edit.text is not None:
            old = text_of(message.get("content"))
            if (new := edit.text(old)) != old:
                _say(message, new, edit)
                altered = True
        altered |= cutter.trim(choice, "message")
        altered |= cutter.end(choice)
    altered |= _limit_usage(doc, cutters)
    if not altered:
        return body
    out = dump(doc)
    change.mark()
    return out


class ChatRewriter(Holding[Doc | None]):
    """Edits one stream; see `editing.Rewriter`."""

    def __init__(self, edit: Edit, change: Change) -> None:
        super().__init__(edit, change)
        self._cutters: dict[int, _Cutter] = {}
        self._frame: Doc = {}  # what every chunk of this stream repeats: id, object, model ...
        self._usage: Doc = {}  # what a chunk that did not go out stated

    def event(self, event: Event) -> Iterator[bytes]:
        """What goes out for this event."""
        chunk = None if event.data is None else parse(event.data)
        if event.data is not None and event.data.startswith(DONE):
            yield from self.end()
            yield event.raw
        elif self._holds and (self._held or _speaks(chunk) or (self._edit.finish == "refusal" and _choices(chunk))):
            self._held.append((event, chunk))
        else:
            yield from self._trimmed(event, chunk)

    def end(self) -> Iterator[bytes]:
        """What was held back for its text, mapped; and the end of a cut choice, where the world never stated one."""
        yield from super().end()
        for index, cutter in self._cutters.items():
            if cutter.cut and not cutter.ended:
                choice = {"index": index, "delta": {}}
                cutter.end(choice)
                yield encode(dump({**self._frame, "choices": [choice], **self._usage}))

    def _mapped(self, held: list[tuple[Event, Doc | None]]) -> list[tuple[Event, Doc | None]]:
        if self._edit.text is None or not held:
            return held
        changed: set[int] = set()
        deltas: dict[int, list[tuple[int, Doc]]] = {}  # choice -> position in held, delta
        for at, (_, chunk) in enumerate(held):
            for choice in _choices(chunk):
                if isinstance(choice.get("delta"), dict):
                    deltas.setdefault(number(choice.get("index")) or 0, []).append((at, choice["delta"]))
        for places in deltas.values():
            spoken = [place for place in places if text_of(place[1].get("content"))] or places[:1]
            old = "".join(text_of(delta.get("content")) for _, delta in spoken)
            if (new := self._edit.text(old)) == old:
                continue
            for (at, delta), piece in zip(spoken, spread(new, len(spoken)), strict=True):
                _say(delta, piece, self._edit)
                changed.add(at)
            if self._edit.finish == "refusal":
                for at, delta in places:  # the role comes with an empty content, which a refusal has not
                    if delta.get("content") == "":
                        delta["content"] = None
                        changed.add(at)
        if changed:
            self._change.mark()
        return [
            (Event(redone(event, chunk), event.data, event.name), chunk) if at in changed and chunk else (event, chunk)
            for at, (event, chunk) in enumerate(held)
        ]

    def _trimmed(self, event: Event, chunk: Doc | None) -> Iterator[bytes]:
        if chunk is None:
            if event.data is None or not self._cut:  # a broken event may hold what was cut
                yield event.raw
            return
        kept: list[Doc] = []
        altered = False
        for choice in _choices(chunk):
            self._frame = {key: value for key, value in chunk.items() if key in _FRAME}
            cutter = self._cutters.setdefault(number(choice.get("index")) or 0, _Cutter(self._edit))
            was_cut, ends = cutter.cut, choice.get("finish_reason") is not None
            altered |= cutter.trim(choice, "delta")
            altered |= ends and cutter.end(choice)
            if ends or not was_cut or (cutter.ended and chunk.get("usage")):  # some state usage in a chunk of its own
                kept.append(choice)
        gone = len(_choices(chunk)) - len(kept)
        altered |= _limit_usage(chunk, list(self._cutters.values()))
        if not altered and not gone:
            yield event.raw
            return
        self._change.mark()
        if kept or not gone:
            chunk["choices"] = kept
            yield redone(event, chunk)
        elif obj(chunk.get("usage")):
            self._usage = {"usage": chunk["usage"]}

    @property
    def _cut(self) -> bool:
        return any(cutter.cut for cutter in self._cutters.values())


class _Cutter:
    """Counts one choice's answer and takes away what is not to be said. Changes messages and deltas in place."""

    def __init__(self, edit: Edit) -> None:
        self._edit = edit
        self._part: object = None  # what the last counted text belonged to
        self._begun: set[object] = set()  # slots of the tool calls that are let out
        self._slots = Slots()
        self.meter = TokenMeter(edit.max_tokens)
        self.cut = self.ended = False

    def trim(self, choice: Doc, key: Literal["message", "delta"]) -> bool:
        """Leave in a choice's message or delta only what may be said; tells whether it was altered."""
        message = obj(choice.get(key))
        if self.cut:
            altered = bool(message)
            message.clear()
        else:
            altered = self._trim(message, streamed=key == "delta")
        if self.cut and choice.get("logprobs"):
            choice["logprobs"] = None
        return altered

    def _trim(self, message: Doc, *, streamed: bool) -> bool:
        altered = False
        if self._edit.drop_tool_calls:
            for key in ("tool_calls", "function_call"):
                altered |= bool(message.pop(key, None))
        if self._edit.max_tokens is None:
            return altered
        self._trim_content(message)
        self._trim_calls(message, streamed=streamed)
        return altered or self.cut

    def end(self, choice: Doc) -> bool:
        """Say why a finished choice ended; tells whether that is news."""
        self.ended = True
        ending = self._edit.ending(cut=self.cut)
        if ending is None or choice.get("finish_reason") == _FINISH[ending]:
            return False
        choice["finish_reason"] = _FINISH[ending]
        return True

    def _take(self, part: object, text: str) -> str:
        if part != self._part:
            self.meter.part()
            self._part = part
        taken = self.meter.take(text)
        self.cut = len(taken) < len(text)
        return taken

    def _trim_content(self, message: Doc) -> None:
        content = message.get("content")
        if isinstance(content, str) and content:
            message["content"] = self._take("text", content)
        elif isinstance(content, list):
            kept: list[Any] = []
            for part in content:
                text = text_of([part])
                if text and not self.cut:
                    part["text"] = self._take("text", text)
                if not self.cut or (text and part["text"]):
                    kept.append(part)
                if self.cut:
                    break
            message["content"] = kept

    def _trim_calls(self, message: Doc, *, streamed: bool) -> None:
        if isinstance(message.get("tool_calls"), list):
            kept: list[Doc] = []
            for position, entry in enumerate(objects(message["tool_calls"])):
                slot = self._slots.of(entry) if streamed else position
                if self.cut or not self._fits(slot, *function_of(entry)):
                    break
                kept.append(entry)
            if self.cut:
                message["tool_calls"] = kept
                if not kept:
                    del message["tool_calls"]
        legacy = message.get("function_call")
        if isinstance(legacy, dict) and (self.cut or not self._fits("function_call", legacy, "arguments")):
            del message["function_call"]

    def _fits(self, slot: object, function: Doc, key: str) -> bool:
        """Whether anything of this tool call may still be said; shortens its arguments to what may."""
        if slot not in self._begun and self.meter.full:
            self.cut = True
            return False
        first, arguments = slot not in self._begun, function.get(key)
        self._begun.add(slot)
        if isinstance(arguments, str) and arguments:
            function[key] = self._take(slot, arguments)
            return first or bool(function[key])
        return True


def _choices(chunk: Doc | None) -> list[Doc]:
    return [] if chunk is None else objects(chunk.get("choices"))


def _speaks(chunk: Doc | None) -> bool:
    """Whether a chunk carries anything of an answer: content, a tool call, or its end."""
    return any(
        choice.get("finish_reason") is not None
        or any(obj(choice.get("delta")).get(key) for key in ("content", "tool_calls", "function_call"))
        for choice in _choices(chunk)
    )


def _say(message: Doc, text: str, edit: Edit) -> None:
    """Make a message or a delta say this, or refuse with it."""
    if edit.finish == "refusal":
        message["refusal"] = text
        if "role" in message:
            message["content"] = None
        else:  # a later delta
            message.pop("content", None)
    else:
        message["content"] = _with_text(message.get("content"), text)


def _with_text(content: object, text: str) -> object:
    """A `content` of the same form that says this text."""
    if not isinstance(content, list):
        return text
    others = [part for part in content if not (isinstance(part, dict) and part.get("type") == "text")]
    return [*others, {"type": "text", "text": text}]


def _limit_usage(doc: Doc, cutters: list[_Cutter]) -> bool:
    """Count no more output tokens than the answer has left, reasoning aside; tells whether the count changed."""
    if not any(cutter.cut for cutter in cutters):
        return False
    limited = [_limited(usage, sum(cutter.meter.count for cutter in cutters)) for usage in usages_of(doc)]
    return True in limited


def _limited(usage: Doc, tokens: int) -> bool:
    output = number(usage.get("completion_tokens"))
    if output is None:
        return False
    reasoning = number(obj(usage.get("completion_tokens_details")).get("reasoning_tokens")) or 0
    left = min(output, reasoning + tokens)
    if left == output:
        return False
    usage["completion_tokens"] = left
    if (total := number(usage.get("total_tokens"))) is not None:
        usage["total_tokens"] = total - (output - left)
    return True
