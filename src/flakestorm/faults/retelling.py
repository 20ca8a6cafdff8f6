"""A tool's result told otherwise: the same message, saying something else.

Whatever carries the result (an HTTP body, a function's value, an MCP message, a line in a conversation), what is to be
said instead is decided once, by a `Retelling`; how it is put in place without breaking what carries it is said here. A
tool's own error, a stream of events and a body that is no text are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flakestorm.core.call import Call, Chunks, Reply, header, without_headers
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.core.stream import GATHERED_BYTES, gather, passed
from flakestorm.faults.base import Change, Scene, inward
from flakestorm.faults.lies import anything
from flakestorm.wire.encoding import decoded
from flakestorm.wire.json_schema import checker
from flakestorm.wire.mcp.protocol import Mcp
from flakestorm.wire.mcp.reply import answered
from flakestorm.wire.mcp.result import retold, texts_of, with_texts
from flakestorm.wire.results import Told
from flakestorm.wire.shape import Doc, obj
from flakestorm.wire.splice import Path

__all__ = ["Fits", "Restated", "Retelling", "is_json", "respoken", "restated", "retelling", "told_otherwise"]

Fits = Callable[[Any], bool]
"""Whether a document may stand in a result: what its schema says, if it has one."""

Spoken = Callable[[str], tuple[str, str] | None]
"""From a text to another one, and what was done to it; None where that is nothing."""


@dataclass(frozen=True, slots=True)
class Restated:
    """What becomes of structured content.

    Args:
        now: the whole of it.
        words: what was done to it.
        values: what is new in it, by where it stands.
        gone: what is missing from it.
    """

    now: Any
    words: str
    values: Mapping[Path, Any] = field(default_factory=dict)
    gone: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Retelling:
    """What is said instead of a result.

    Args:
        text: of a result that is text, JSON or not.
        structured: of structured content.
        why_not: the reason to give where there is nothing to tell otherwise.
    """

    text: Spoken
    structured: Callable[[Any, Fits], Restated | None]
    why_not: str


def retelling(how: Retelling, scene: Scene) -> Interceptor:
    """The tool runs, and its result is told otherwise."""

    def stage(call: Call) -> Flow:
        reply = yield from inward(call)
        if call.wire == Mcp.name:
            return answered(call, reply, restated(lambda result: _mcp(how, scene, result), how.why_not, scene))
        return respoken(reply, how.text, how.why_not, scene)

    return stage


def told_otherwise(how: Retelling, scene: Scene, told: Told) -> Change | None:
    """The same for a result in a conversation. A failure is left alone."""
    found = None if told.failed else how.text(told.text)
    if found is None:
        scene.idle("the tool failed by itself" if told.failed else how.why_not)
        return None
    return Change(found[1], Told(found[0]))


def respoken(reply: Reply, change: Spoken, why_not: str, scene: Scene) -> Reply:
    """A reply over HTTP, or of a function, with its text changed once it is all here."""
    excuse = _excuse(reply)
    plain = None if excuse else decoded(reply)
    if plain is None:
        scene.idle(excuse or "the result is compressed in a way that cannot be undone here")
        return reply

    def respeak() -> Chunks:
        parts: list[bytes] = []
        if not (yield from gather(parts)):
            scene.idle(f"the result is larger than {GATHERED_BYTES >> 20} MB")
            yield from passed(parts)
            return
        body = b"".join(parts)
        try:
            changed = change(body.decode())
        except (UnicodeDecodeError, RecursionError):  # no text, or one that nobody can read
            changed = None
        if changed is None:
            scene.idle(why_not)
            yield body
        else:
            scene.fired(changed[1])
            yield changed[0].encode()

    return replace(plain, headers=without_headers(plain.headers, "content-length")).pipe(respeak)


def restated(change: Callable[[Doc], tuple[Doc, str] | None], why_not: str, scene: Scene) -> Callable[[Doc], Doc]:
    """The change of an MCP server's answer that changes its result so.

    Args:
        change: from a result to another one, and what was done to it; None where that is nothing.
        why_not: the reason to give then.
        scene: is told.
    """

    def answer(said: Doc) -> Doc:
        result = obj(said.get("result"))
        if "error" in said or result.get("isError") is True:
            scene.idle("the tool failed by itself")
            return said
        holds_one = result.get("resultType") != "input_required" and (texts_of(result) or "structuredContent" in result)
        changed = change(result) if holds_one else None
        if changed is None:
            scene.idle(why_not)
            return said
        scene.fired(changed[1])
        return {**said, "result": changed[0]}

    return answer


def _mcp(how: Retelling, scene: Scene, result: Doc) -> tuple[Doc, str] | None:
    if "structuredContent" not in result:
        return _texts(how, result)
    document = result["structuredContent"]
    fits = anything if scene.promised is None else checker(scene.promised)
    found = how.structured(document, fits)
    if found is None:
        return None
    said = with_texts(result, lambda text: retold(text, document, values=found.values, without=found.gone))
    if fits(found.now) or not fits(document):
        return {**said, "structuredContent": found.now}, found.words
    del said["structuredContent"]  # a client would refuse it, and its agent would not see a word
    return {**said, "isError": True}, f"{found.words}, as an error"


def _texts(how: Retelling, result: Doc) -> tuple[Doc, str] | None:
    words: list[str] = []

    def rewrite(text: str) -> str:
        found = how.text(text)
        if found is None:
            return text
        words.append(found[1])
        return found[0]

    said = with_texts(result, rewrite)
    return (said, ", ".join(words[:3])) if words else None


def is_json(reply: Reply) -> bool:
    """Whether a reply says that it is JSON."""
    kind = _kind(reply)
    return kind == "application/json" or kind.endswith("+json")


def _kind(reply: Reply) -> str:
    return (header(reply.headers, "content-type") or "").partition(";")[0].strip().lower()


def _excuse(reply: Reply) -> str:
    """Why this reply is no text that could be told otherwise; empty where it is."""
    if reply.status >= 400:
        return f"the tool answered {reply.status} by itself"
    if reply.streamed:
        return "the tool answers with a stream of events"
    kind = _kind(reply)
    if kind and not is_json(reply) and not kind.startswith("text/") and kind != "application/xml":
        return f"the result is {kind}, not text"
    return ""
