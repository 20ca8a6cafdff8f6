"""Ollama's own protocol: `/api/chat` and `/api/generate`. (It speaks OpenAI's as well, under `/v1`.)

A stream, which is what comes unless the request says otherwise, is a document per line; the last one says `done`.
Text is `message.content`, or `response` of a generation; `thinking` is left out. Tool arguments are objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Edit, Failure, Finish, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.calls import remade
from flakestorm.wire.calls_snapshots import snapshot_calls
from flakestorm.wire.editing import Change
from flakestorm.wire.frames import Framer, Lines, frames
from flakestorm.wire.provider_errors import ollama_error, ollama_error_document
from flakestorm.wire.shape import Doc, dump, items, number, obj, objects, offered, outline, parse, string
from flakestorm.wire.snapshots import Part, SnapshotRewriter, rewrite_whole

__all__ = ["Ollama", "OllamaAnswer", "OllamaAnswers"]

_WORDS: dict[Finish, str] = {"length": "length", "stop": "stop", "refusal": "stop"}
_NDJSON = "application/x-ndjson"


class Ollama:
    """The `ollama` wire. It holds no state; one object serves every run."""

    name = "ollama"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call is not one of this protocol. Reads the body once.

        Many an application has an `/api/chat` of its own, so a request must name a model to be taken for Ollama's.
        """
        if call.method != "POST":
            return None
        path = call.url.partition("?")[0].rstrip("/")
        if not path.endswith(("/api/chat", "/api/generate")):
            return None
        body = outline(call.body) or {}
        asks = isinstance(body.get("messages"), list) if path.endswith("/chat") else isinstance(body.get("prompt"), str)
        return string(body.get("model")) or None if asks else None

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST to `.../api/chat` or `.../api/generate` with a model and something to answer."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """Read a request body."""
        doc = parse(body) or {}
        turns: list[Turn] = []
        if isinstance(doc.get("prompt"), str):
            system = string(doc.get("system"))
            turns = [Turn("system", system)] if system else []
            turns.append(Turn("user", doc["prompt"]))
        waiting: list[ToolCall] = []  # calls without a result so far: one that quotes nothing answers the first
        for message in objects(doc.get("messages")):
            role, text = string(message.get("role")), string(message.get("content"))
            calls = _tool_calls(message)
            waiting = [*calls] if calls else waiting
            if role != "tool":
                turns.append(Turn(role, text, calls))
                continue
            call_id, name = string(message.get("tool_call_id")), string(message.get("tool_name") or message.get("name"))
            for at, call in enumerate(waiting):
                if (call_id or call.id) == call.id and (name or call.name) == call.name:
                    call_id, name = call_id or call.id, name or call.name
                    del waiting[at]
                    break
            turns.append(Turn(role, "", (), (ToolResult(call_id, name, text),)))
        functions = [obj(tool.get("function")) for tool in objects(doc.get("tools"))]
        tools, parameters = offered((function, function.get("parameters")) for function in functions)
        streams = doc.get("stream") is not False
        return Asked(string(doc.get("model")), streams, tuple(turns), tools, parameters)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply body. A document is a stream of one line, unless it is spread over several."""
        whole = None if stream else parse(body)
        if whole is not None:
            return _said([whole], ended=True)
        lines = [line.data for line in frames(Lines(), body) if line.data is not None]
        return _said([parse(line) or {} for line in lines], ended=False)

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error Ollama answers with, also where it streams."""
        return ollama_error(failure)

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> bytes:
        """A line that holds an error; no other follows it."""
        return dump(ollama_error_document(failure)) + b"\n"

    def blocked(self, call: Call, message: str = "") -> None:
        """Nothing: Ollama has no content filter."""

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Lines, where they are announced."""
        return Lines() if media_type == _NDJSON else None

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The reply with its meaning changed: see `snapshots`. What a content filter would do is left undone."""
        if edit.finish is not None and edit.finish not in _WORDS:
            return reply

        return remade(
            reply,
            edit,
            snapshot_calls(OllamaAnswers()),
            body=_rewrite_body,
            events=partial(SnapshotRewriter, answers=OllamaAnswers()),
            announced_as=_NDJSON,
            framing=self.framing,
        )


def _rewrite_body(data: bytes, edit: Edit, change: Change) -> bytes:
    if parse(data) is not None:
        return rewrite_whole(data, edit, change, OllamaAnswers())
    rewriter = SnapshotRewriter(edit, change, OllamaAnswers())  # lines that were not announced as such
    out = [raw for line in frames(Lines(), data) for raw in rewriter.event(line)]
    return b"".join([*out, *rewriter.end()])


class OllamaAnswer:
    """The answer in one document; see `snapshots.Answer`."""

    index = 0

    def __init__(self, doc: Doc) -> None:
        self._doc = doc
        chat = isinstance(doc.get("message"), dict)
        self._holder: Doc = doc["message"] if chat else doc
        self._key = "content" if chat else "response"

    @property
    def parts(self) -> list[Part]:
        """The text, then the tool calls."""
        calls = objects(self._holder.get("tool_calls"))
        found = [Part("call", call, obj(call.get("function")), "arguments") for call in calls]
        text = isinstance(self._holder.get(self._key), str)
        return [Part("text", self._holder, self._holder, self._key), *found] if text else found

    def keep(self, parts: Sequence[Part]) -> None:
        """Leave only these; the text is then empty, as in every chunk that has none."""
        kept = {id(part.entry) for part in parts}
        if id(self._holder) not in kept and isinstance(self._holder.get(self._key), str):
            self._holder[self._key] = ""
        left = [call for call in items(self._holder.get("tool_calls")) if id(call) in kept]
        if left:
            self._holder["tool_calls"] = left
        else:
            self._holder.pop("tool_calls", None)

    def say(self, text: str) -> None:
        """Make this the text."""
        self._holder[self._key] = text

    @property
    def finish(self) -> str | None:
        """Why it ended; old servers say only that it is done."""
        return string(self._doc.get("done_reason")) or "" if self._doc.get("done") is True else None

    @finish.setter
    def finish(self, word: str) -> None:
        self._doc["done_reason"] = word


class OllamaAnswers:
    """The one answer of an Ollama document; see `snapshots.Answers`."""

    words = _WORDS
    malformed = None

    def __call__(self, doc: Doc) -> Sequence[OllamaAnswer]:
        """The answer in a document; none in an error."""
        speaks = isinstance(doc.get("message"), dict) or isinstance(doc.get("response"), str)
        return [OllamaAnswer(doc)] if speaks else []

    def limit(self, doc: Doc, tokens: int) -> bool:
        """Count no more output tokens than this. Thoughts are counted with them, so this may be too few."""
        output = number(doc.get("eval_count"))
        if output is None or output <= tokens:
            return False
        doc["eval_count"] = tokens
        return True


def _tool_calls(message: Doc) -> tuple[ToolCall, ...]:
    found = []
    for call in objects(message.get("tool_calls")):
        function = obj(call.get("function"))
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else dump(arguments or {}).decode()
        found.append(ToolCall(string(call.get("id")), string(function.get("name")), text))
    return tuple(found)


def _said(docs: Sequence[Doc], *, ended: bool) -> Said:
    text: list[str] = []
    calls: list[ToolCall] = []
    finish, usage, model, error = None, None, "", None
    for doc in docs:
        message = obj(doc.get("message"))
        text += [string(message.get("content")), string(doc.get("response"))]
        calls += _tool_calls(message)
        model = string(doc.get("model")) or model
        error = error or string(doc.get("error")) or None
        if doc.get("done") is True:
            ended, finish = True, string(doc.get("done_reason")) or None
            counted = Usage(number(doc.get("prompt_eval_count")), number(doc.get("eval_count")))
            usage = counted if counted != Usage() else None
    return Said("".join(text), tuple(calls), finish, usage, model, error, ended)
