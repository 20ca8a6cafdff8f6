"""MCP messages and their framing: reading never raises, and whatever is said in an answer's place is one message."""

from __future__ import annotations

import json

import orjson

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import pump
from flakestorm.wire.mcp.protocol import Mcp, identify, key_of, messages, name_of, read, works
from flakestorm.wire.mcp.reply import answered, broken, failed, forgotten, lying, output_schemas
from flakestorm.wire.mcp.result import read_json, retold, texts_of, with_texts
from flakestorm.wire.mcp.schema import filled
from fuzz.material import Bytes, jsonlike

__all__ = ["check"]

WORDS = (
    "jsonrpc", "2.0", "id", "method", "params", "tools/call", "tools/list", "initialize", "notifications/progress",
    "name", "arguments", "result", "error", "code", "message", "content", "type", "text", "structuredContent",
    "isError", "contents", "messages", "tools", "inputSchema", "outputSchema", "properties", "string", "object",
    "array", "items", "$ref", "#/$defs/a", "$defs", "a", "anyOf", "required", "enum", "const", "_meta",
    "progressToken", "resources/read", "prompts/get", "ping", "resource", "image", "data", "mimeType", "maxLength",
    "pattern", "format", "additionalProperties", "allOf", "not",
)  # fmt: skip


def check(data: bytes) -> None:
    source = Bytes(data)
    way = source.below(3)
    if way == 0:
        body = jsonlike(source, WORDS)
    else:
        value = source.value(WORDS)
        body = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "result" if way == 1 else "params": value}
            | ({} if way == 1 else {"method": source.word(WORDS)})
        ).encode()
    message = read(body)
    if message is not None:
        name_of(message)
        key_of(message.document.get("id"))
    headers = (("accept", "text/event-stream"),) if source.below(2) else ()
    call = Call(("POST", "CALL", "GET")[source.below(3)], "http://x/mcp?session_id=1", headers, body)
    identify(call)
    works(call)
    list(messages(body))
    wire = Mcp()
    wire.said(body, stream=False)
    for reply in (failed(call, "no\r\n\x00"), forgotten(call)):
        assert not reply.body or orjson.loads(_read(reply))
    found = read(body)
    result = found.document.get("result") if found is not None else None
    if isinstance(result, dict):
        texts_of(result)
        with_texts(result, lambda text, *_: f"{text}!")
    schema = source.value(WORDS)
    if isinstance(schema, dict):
        filled(source.value(WORDS), "payload", schema)
        promised = Call(
            "POST", "http://x/mcp", (), b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}'
        )
        media = ("application/json", "text/event-stream", "application/x-ndjson")[source.below(3)]
        reply = Reply(200, (("content-type", media),), [body[:7], body[7:]])
        for change in (lying(promised, "payload\r\n", schema, _told), broken("...", _told)):
            _read(answered(promised, reply, change))
    output_schemas(body)
    text = source.text()
    retold(text, read_json(text), values={})


def _told(_: str) -> None:
    """What was done is of no interest here."""


def _read(reply: Reply) -> bytes:
    return b"".join(pump(reply, lambda _: None))
