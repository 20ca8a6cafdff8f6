"""Changing what a Responses reply says: the rules, and whole replies. Streams are in `openai_responses_stream`.

Truncation cuts the answer, item by item: the text of messages, then the arguments of tool calls. The item that was cut
says `incomplete` and nothing follows it; the response says `incomplete` too, and why (`max_output_tokens`). Cut
arguments stay a JSON prefix, which is what OpenAI itself sends when tokens run out.

A mapped text is the text of the first part that had any; the others are then empty. Where there was none, a message is
put in before the first tool call. Annotations of a text that changed are left out, because they point into the old one.
A text that is a refusal stands in parts of that kind (`openai_responses_refusal`).

Reasoning, refusals of the model's own, and the tools OpenAI runs itself are never touched.
"""

from __future__ import annotations

from typing import Any

from flakestorm.wire.base import Edit, Finish
from flakestorm.wire.editing import Change
from flakestorm.wire.openai_responses.refusal import refuse
from flakestorm.wire.shape import Doc, dump, items, number, obj, objects, parse, string
from flakestorm.wire.tokens import Limit

__all__ = [
    "ANSWERS",
    "ARGUMENTS",
    "ENDS",
    "cut_part",
    "end",
    "is_text",
    "message_item",
    "rewrite_body",
    "say",
    "shorten",
]

ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The items that ask the agent for a tool, and the key under which each has its arguments."""
ANSWERS = ("message", *ARGUMENTS)
"""The items an answer is made of: what is cut, and counted."""
ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
"""The events one of which is the last of a stream; they carry the whole response."""
_STATUS: dict[Finish, tuple[str, Doc | None]] = {  # and what is said of an answer that is incomplete
    "length": ("incomplete", {"reason": "max_output_tokens"}),
    "content_filter": ("incomplete", {"reason": "content_filter"}),
    "stop": ("completed", None),
    "refusal": ("completed", None),
}
_ANSWERED = ("completed", "complete", "incomplete")
"""Statuses of a response that is an answer: it is not still being made, and has not failed."""


def rewrite_body(body: bytes, edit: Edit, change: Change) -> bytes:
    """Edit a whole reply. Anything that is not one comes back as it was, as does one with nothing to alter."""
    doc = parse(body)
    if doc is None or not isinstance(doc.get("output"), list) or doc.get("status", "completed") not in _ANSWERED:
        return body
    if doc.get("object") == "response.compaction":
        return body
    altered = edit.text is not None and say(doc, edit.text(text_of(doc)))
    if altered and edit.finish == "refusal":
        refuse(doc)
    limit = Limit(edit.max_tokens)
    altered |= shorten(doc, edit, limit)
    altered |= end(doc, edit, limit)
    if not altered:
        return body
    out = dump(doc)
    change.mark()
    return out


def is_text(part: object) -> bool:
    """Whether this is a part of a message that says something to the user."""
    return isinstance(part, dict) and part.get("type") == "output_text"


def text_of(response: Doc) -> str:
    """The text of a response."""
    return "".join(string(part.get("text")) for part in _text_parts(response))


def say(response: Doc, text: str) -> bool:
    """Make this the text of a response; tells whether that is news."""
    if text == text_of(response):
        return False
    output = items(response.get("output"))
    parts = _text_parts(response)
    for part in parts:
        part.update(text="", annotations=[])
        if part.get("logprobs"):
            part["logprobs"] = []
    if parts:
        spoken = parts[0]
        spoken["text"] = text
    else:
        answers = [at for at, item in enumerate(output) if obj(item).get("type") in ANSWERS]
        place = answers[0] if answers else len(output)
        response["output"] = [*output[:place], message_item(response, text), *output[place:]]
    return True


def message_item(response: Doc, text: str) -> Doc:
    """A message that says this."""
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    item_id = "msg_" + string(response.get("id")).removeprefix("resp_")
    return {"id": item_id, "type": "message", "status": "completed", "content": [part], "role": "assistant"}


def shorten(response: Doc, edit: Edit, limit: Limit) -> bool:
    """Leave in a response only the items that may be said; tells whether it was altered."""
    output = items(response.get("output"))
    kept: list[Any] = []
    for item in output:
        kind = string(obj(item).get("type"))
        if edit.drop_tool_calls and kind in ARGUMENTS:
            continue
        if edit.max_tokens is not None and kind in ANSWERS:
            if not limit.begin():
                break
            _shorten_item(item, limit)
        kept.append(item)
        if limit.cut:
            break
    if len(kept) < len(output):
        response["output"] = kept
    return limit.cut or len(kept) < len(output)


def _shorten_item(item: Doc, limit: Limit) -> None:
    if item["type"] in ARGUMENTS:
        key = ARGUMENTS[item["type"]]
        limit.meter.part()
        if isinstance(item.get(key), str):
            item[key] = limit.take(item[key])
    else:
        content = items(item.get("content"))
        for at, part in enumerate(content):
            if not is_text(part):
                continue
            limit.meter.part()
            text = string(part.get("text"))
            if len(taken := limit.take(text)) < len(text):
                cut_part(part, taken)
                item["content"] = content[: at + 1]
                break
    if limit.cut and item.get("status"):
        item["status"] = "incomplete"


def cut_part(part: Doc, text: str) -> None:
    """Make a text part, or an event that states one, say this beginning of what it said."""
    part["text"] = text
    if part.get("logprobs"):
        part["logprobs"] = []
    if part.get("annotations"):
        ends = [
            (number(note.get("end_index")) or number(note.get("index")) or 0, note)
            for note in objects(part["annotations"])
        ]
        part["annotations"] = [note for last, note in ends if last <= len(text)]


def end(response: Doc, edit: Edit, limit: Limit) -> bool:
    """Say how a response ended, and how much it was; tells whether that is news."""
    ending = edit.ending(cut=limit.cut)
    altered = False
    if ending is not None and response.get("status") in _ANSWERED:
        status, details = _STATUS[ending]
        news = details is not None and response.get("incomplete_details") != details
        if altered := news or response["status"] != status:
            response["status"], response["incomplete_details"] = status, details
    usage = obj(response.get("usage"))
    output = number(usage.get("output_tokens"))
    if not limit.cut or output is None:
        return altered
    reasoning = number(obj(usage.get("output_tokens_details")).get("reasoning_tokens")) or 0
    left = min(output, reasoning + limit.meter.count)
    if left < output:
        usage["output_tokens"] = left
        if (total := number(usage.get("total_tokens"))) is not None:
            usage["total_tokens"] = total - (output - left)
        altered = True
    return altered


def _text_parts(response: Doc) -> list[Doc]:
    messages = [item for item in objects(response.get("output")) if item.get("type") == "message"]
    return [part for item in messages for part in objects(item.get("content")) if is_text(part)]
