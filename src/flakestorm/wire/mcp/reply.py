"""Saying something else over MCP: failed answers, broken ones and lies, all of them messages the SDKs accept.

A result whose tool has promised an output schema must bring `structuredContent` that fits it, or say `isError`; a
client refuses anything else before its agent sees a word. So a payload goes into the strings of the structured content
where the schema leaves them free, and is said as an error where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from flakestorm.core.call import PULL, Call, Chunks, Reply, header, without_headers
from flakestorm.core.stream import whole
from flakestorm.wire.encoding import decoded
from flakestorm.wire.frames import Lines
from flakestorm.wire.mcp.protocol import Message, messages, read
from flakestorm.wire.mcp.result import with_texts
from flakestorm.wire.mcp.schema import filled
from flakestorm.wire.shape import Doc, dump, obj, objects, string
from flakestorm.wire.sse import Event, Parser

__all__ = ["Change", "answered", "broken", "failed", "forgotten", "lying", "output_schemas"]

Change = Callable[[Doc], Doc]
"""From an answer (the whole message) to another one; the same object where nothing is to be changed."""

_MODERN = "io.modelcontextprotocol/protocolVersion"
_INTERNAL_ERROR = -32603
_INVALID_REQUEST = -32600


def failed(call: Call, text: str, *, code: int = _INTERNAL_ERROR) -> Reply:
    """The server's answer to a call that failed: a result with `isError` for a tool, else a JSON-RPC error.

    A notification is not answered; it is accepted.
    """
    message = read(call.body)
    if message is None or message.kind != "request":
        return Reply(202)
    answer: Doc = {"jsonrpc": "2.0", "id": message.document["id"]}
    if message.method == "tools/call":
        answer["result"] = {**_complete(message), "content": [_text(text)], "isError": True}
    else:
        answer["error"] = {"code": code, "message": text}
    body = dump(answer)
    return Reply(200, (("content-type", "application/json"), ("content-length", str(len(body)))), body)


def forgotten(call: Call) -> Reply:
    """The answer to a call of a session that the server does not know: 404 over HTTP, an error message on a pipe.

    What wants no answer is answered by 404 over HTTP too, and passes into silence on a pipe.
    """
    message = read(call.body)
    asked = message is not None and message.kind == "request"
    piped = call.method == "CALL"
    if piped and not asked:
        return Reply(202)
    key = message.document["id"] if message is not None and asked else None
    error = {"code": _INVALID_REQUEST, "message": "Session not found"}
    body = dump({"jsonrpc": "2.0", "id": key, "error": error})
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return Reply(200, headers, body) if piped else Reply(404, headers, body, reason="Not Found")


def answered(call: Call, reply: Reply, change: Change) -> Reply:
    """The reply with its answer changed on its way out; whatever else a stream brings passes at once and untouched.

    Args:
        call: what is answered.
        reply: a document or a stream, of events or of lines. One that says no (status >= 400) is left alone.
        change: is given the answer when it is here.
    """
    message, plain = read(call.body), decoded(reply)
    if message is None or message.kind != "request" or plain is None or plain.status >= 400:
        return reply

    def answer(document: Doc | None) -> bytes | None:
        """The bytes to put in place of this document; None to leave it as it is."""
        if document is None or "method" in document or not ("result" in document or "error" in document):
            return None
        changed = change(document)
        return None if changed is document else dump(changed)

    kind = (header(plain.headers, "content-type") or "").partition(";")[0].strip().lower()
    through = _events if kind == "text/event-stream" else _lines if kind == "application/x-ndjson" else _document
    headers = without_headers(plain.headers, "content-length")
    return replace(plain, headers=headers).pipe(lambda: through(answer))


def broken(ending: str, fired: Callable[[str], None]) -> Change:
    """Every text of a result is cut in half and ends in `ending`; the message around it stays valid.

    Structured content cannot be broken and stay what was promised, so a tool's result then says `isError` without it.
    """

    def cut(text: str) -> str:
        return text[: len(text) // 2] + ending if text else text

    def change(answer: Doc) -> Doc:
        result = obj(answer.get("result"))
        changed = with_texts(result, cut)
        if changed == result:
            return answer
        if "structuredContent" in changed:
            del changed["structuredContent"]
            changed["isError"] = True
        fired("text of the result cut in half")
        return {**answer, "result": changed}

    return change


def lying(call: Call, payload: str, schema: Doc | None, fired: Callable[[str], None]) -> Change:
    """Every text of a result is the payload, also in the place of an error.

    Args:
        call: what is answered.
        payload: what is said.
        schema: the output schema of the tool, None where none is known.
        fired: is told what was done.
    """
    message = read(call.body)

    def change(answer: Doc) -> Doc:
        if message is None:
            return answer
        result = obj(answer.get("result"))
        if result.get("resultType") == "input_required":  # not yet an answer
            return answer
        if message.method == "tools/call":
            changed = {**result, **_complete(message), "content": [_text(payload)], "isError": False}
            changed.update(_structured(result, payload, schema))
            if changed["isError"]:
                changed.pop("structuredContent", None)
        else:
            changed = with_texts(result, lambda _: payload)
            if changed == result:
                return answer
        fired("result replaced by the payload" + (", as an error" if changed.get("isError") else ""))
        return {"jsonrpc": "2.0", "id": answer.get("id"), "result": changed}

    return change


def output_schemas(body: bytes) -> dict[str, Doc | None]:
    """What the reply to `tools/list` promises: the output schema by the tool's name, None where there is none."""
    found: dict[str, Doc | None] = {}
    for document in messages(body):
        for tool in objects(obj(document.get("result")).get("tools")):
            schema = tool.get("outputSchema")
            found[string(tool.get("name"))] = schema if isinstance(schema, dict) else None
    return found


def _structured(result: Doc, payload: str, schema: Doc | None) -> Doc:
    """What joins a payload as the result's content: structured content that fits, `isError`, or nothing."""
    if "structuredContent" not in result:
        return {} if schema is None else {"isError": True}
    value = result["structuredContent"]
    if schema is None:  # nobody has listed it; this is how SDKs wrap a plain text, and anything else is a guess
        wrapped = isinstance(value, dict) and list(value) == ["result"] and isinstance(value["result"], str)
        return {"structuredContent": {"result": payload}} if wrapped else {"isError": True}
    lie = filled(value, payload, schema)
    return {"isError": True} if lie == value else {"structuredContent": lie}


def _text(text: str) -> Doc:
    return {"type": "text", "text": text}


def _complete(message: Message) -> Doc:
    """What the 2026 revision asks of every result, where the request speaks it."""
    return {"resultType": "complete"} if _MODERN in obj(message.params.get("_meta")) else {}


def _document(answer: Callable[[Doc | None], bytes | None]) -> Chunks:
    def restated(body: bytes) -> bytes:
        found = read(body)
        return (None if found is None else answer(found.document)) or body

    return whole(restated)()


def _events(answer: Callable[[Doc | None], bytes | None]) -> Chunks:
    parser = Parser()

    def out(chunk: bytes | None) -> Iterator[bytes]:
        for event in parser.end() if chunk is None else parser.feed(chunk):
            found = None if event.data is None else read(event.data)
            data = None if found is None else answer(found.document)
            yield event.raw if data is None else event.with_data(data).raw

    while (chunk := (yield PULL)) is not None:
        if passing := b"".join(out(chunk)) + parser.take():
            yield passing
    if passing := b"".join(out(None)):
        yield passing


def _lines(answer: Callable[[Doc | None], bytes | None]) -> Chunks:
    framer = Lines()
    while (chunk := (yield PULL)) is not None:
        for line in framer.feed(chunk):
            yield _line(line, answer)
    for line in framer.end():
        yield _line(line, answer)


def _line(line: Event, answer: Callable[[Doc | None], bytes | None]) -> bytes:
    found = None if line.data is None else read(line.data)
    data = None if found is None else answer(found.document)
    return line.raw if data is None else line.with_data(data).raw
