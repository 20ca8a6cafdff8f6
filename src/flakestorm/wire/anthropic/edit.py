"""Changing what an Anthropic Messages reply says: the rules, and whole replies. Streams are in `anthropic_stream`.

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

from typing import Any

from flakestorm.wire import tokens
from flakestorm.wire.base import Edit, Finish
from flakestorm.wire.editing import Change
from flakestorm.wire.shape import Doc, dump, number, obj, parse, parse_prefix, string

__all__ = ["ANSWERS", "Limit", "is_a", "rewrite_body"]

_FINISH: dict[Finish, str] = {
    "length": "max_tokens",
    "stop": "end_turn",
    "refusal": "refusal",
    "content_filter": "refusal",  # what its filters intervene with is called the same
}
ANSWERS = ("text", "tool_use")
"""The blocks an answer is made of: what is cut, and counted."""


def rewrite_body(body: bytes, edit: Edit, change: Change) -> bytes:
    """Edit a whole reply. Anything that is not one comes back as it was, as does one with nothing to alter."""
    doc = parse(body)
    if doc is None or doc.get("type") != "message" or not isinstance(doc.get("content"), list):
        return body
    limit = Limit(edit)
    blocks: list[Any] = doc["content"]
    if edit.text is not None:
        blocks = _with_text(blocks, edit)
    if edit.drop_tool_calls:
        blocks = [block for block in blocks if not is_a(block, "tool_use")]
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


def is_a(block: object, *kinds: str) -> bool:
    """Whether this is a content block of one of these kinds."""
    return isinstance(block, dict) and block.get("type") in kinds


def _with_text(blocks: list[Any], edit: Edit) -> list[Any]:
    """The blocks with their text mapped; the same list if that changes nothing."""
    spoken = [at for at, block in enumerate(blocks) if is_a(block, "text")]
    old = "".join(string(blocks[at].get("text")) for at in spoken)
    new = old if edit.text is None else edit.text(old)
    if new == old:
        return blocks
    answers = [at for at, block in enumerate(blocks) if is_a(block, *ANSWERS)]
    place = (spoken or answers or [len(blocks)])[0]
    said = [{"type": "text", "text": new}] if new else []
    return [*blocks[:place], *said, *(block for block in blocks[place:] if not is_a(block, "text"))]


def _shortened(blocks: list[Any], limit: Limit) -> list[Any]:
    kept: list[Any] = []
    for block in blocks:
        if is_a(block, *ANSWERS):
            if not limit.begin():
                break
            if block["type"] == "text":
                block["text"] = limit.take(string(block.get("text")))
            elif block.get("input"):
                said = dump(block["input"]).decode()
                if len(taken := limit.take(said)) < len(said):
                    block["input"] = parse_prefix(taken)
        kept.append(block)
        if limit.cut:
            break
    return kept


class Limit(tokens.Limit):
    """Counts the answer up to its limit, and says how it ended."""

    def __init__(self, edit: Edit) -> None:
        super().__init__(edit.max_tokens)
        self._edit = edit

    def begin(self) -> bool:
        """Whether another block of the answer, which begins a token of its own, may begin."""
        self.meter.part()
        return super().begin()

    def end(self, message: Doc, usage: object) -> bool:
        """Say why it ended, in a message or the delta of one, and how much it was; tells whether that is news."""
        ending = self._edit.ending(cut=self.cut)
        altered = False
        if ending is not None and message.get("stop_reason") != _FINISH[ending]:
            message["stop_reason"], message["stop_sequence"] = _FINISH[ending], None
            if _FINISH[ending] == "refusal":
                message["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
            elif message.get("stop_details"):
                message["stop_details"] = None
            altered = True
        output = number(obj(usage).get("output_tokens"))
        if self.cut and output is not None and output > self.meter.count:
            obj(usage)["output_tokens"] = self.meter.count
            altered = True
        return altered
