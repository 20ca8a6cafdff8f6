"""One recorded tool reply, as whoever called expects it: over HTTP, over MCP, as a value, or as a result.

A session says what a tool said and not how it travelled, so the same session serves an agent whose tool was a web
service yesterday and is an MCP server today.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Literal

from flakestorm.config.replays import ToolResponse
from flakestorm.core.call import Call, Headers, Reply
from flakestorm.errors import CallFailed
from flakestorm.wire.mcp.protocol import read
from flakestorm.wire.mcp.reply import failed
from flakestorm.wire.mcp.result import ABSENT, read_json
from flakestorm.wire.results import Told
from flakestorm.wire.shape import Doc, dump, obj

__all__ = ["breaks", "reply_of", "text_of", "told_of"]

_MODERN = "io.modelcontextprotocol/protocolVersion"


def breaks(response: ToolResponse) -> bool:
    """Whether this reply is a failure, or one that a fault had made: what the agent met was a broken tool."""
    failing = response.status is not None and (response.status == 0 or response.status >= 400)
    return failing or response.fault is not None or obj(response.response).get("isError") is True


def text_of(response: ToolResponse) -> str:
    """What the tool said, as text; of a failure without words the standard phrase of its status."""
    value = response.response
    if value is None:
        status = response.status
        return "the connection broke" if status == 0 else f"{status} {_phrase(status)}" if status else ""
    return value if isinstance(value, str) else dump(value).decode()


def told_of(response: ToolResponse) -> Told:
    """The reply as a model is told it."""
    failing = response.status is not None and (response.status == 0 or response.status >= 400)
    return Told(text_of(response), failed=failing)


def reply_of(call: Call, response: ToolResponse, promised: Mapping[str, Any] | None = None) -> Reply:
    """The reply to this call.

    Args:
        call: a tool's call: an HTTP request, a `tools/call` over MCP, or a function's.
        response: what was recorded.
        promised: the output schema of the MCP tool, where the run has seen one.

    Raises:
        CallFailed: the recorded call broke (status 0).
    """
    status = 200 if response.status is None else response.status
    if call.kind == "mcp":
        return failed(call, text_of(response)) if status == 0 or status >= 400 else _mcp(call, response, promised)
    if status == 0:
        words = text_of(response)
        raise CallFailed(_how(words), words)
    if call.method == "CALL":
        return _function(status, response)
    headers, body = _spelled(response.response, status)
    return Reply(status, (*headers, ("content-length", str(len(body)))), body, reason=_phrase(status))


def _how(words: str) -> Literal["timeout", "reset", "refused"]:
    """In which way the call broke, by what was said of it."""
    said = words.lower()
    if any(word in said for word in ("timeout", "timed out", "time-out", "no answer", "deadline")):
        return "timeout"
    return "refused" if "refused" in said else "reset"


def _function(status: int, response: ToolResponse) -> Reply:
    """A value for a function's caller; of a failure, what makes the exception."""
    value = response.response
    if status >= 400:
        said = value if isinstance(value, dict) and "error" in value else {"error": text_of(response)}
        return Reply(status, (("content-type", "application/json"),), dump(said), reason=_phrase(status))
    if isinstance(value, str):
        return Reply(200, (("content-type", "text/plain; charset=utf-8"),), value.encode("utf-8", "surrogatepass"))
    return Reply(200, (("content-type", "application/json"),), dump(value))


def _spelled(value: Any, status: int) -> tuple[Headers, bytes]:
    if value is None:
        if status < 400:
            return (), b""
        value = {"error": _phrase(status)}
    if isinstance(value, str):
        kind = "text/plain; charset=utf-8" if read_json(value) is ABSENT else "application/json"
        return (("content-type", kind),), value.encode("utf-8", "surrogatepass")
    return (("content-type", "application/json"),), dump(value)


def _mcp(call: Call, response: ToolResponse, promised: Mapping[str, Any] | None) -> Reply:
    message = read(call.body)
    if message is None or message.kind != "request":
        return Reply(202)
    value = response.response
    result: Doc = {"resultType": "complete"} if _MODERN in obj(message.params.get("_meta")) else {}
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        result |= value  # recorded as the server said it
    else:
        text = text_of(response)
        result |= {"content": [{"type": "text", "text": text}], "isError": False}
        structured = _structured(value, text, promised)
        if structured is not None:
            result["structuredContent"] = structured
    body = dump({"jsonrpc": "2.0", "id": message.document["id"], "result": result})
    return Reply(200, (("content-type", "application/json"), ("content-length", str(len(body)))), body)


def _structured(value: Any, text: str, promised: Mapping[str, Any] | None) -> Doc | None:
    """The same as structured content: the object it is, or as SDKs wrap what is none."""
    document = read_json(value) if isinstance(value, str) else value
    wrapped = promised is None or list(obj(promised.get("properties"))) == ["result"]
    if isinstance(document, dict) and not (wrapped and promised is not None and "result" not in document):
        return document
    if not wrapped:
        return None
    kind = obj(obj(obj(promised).get("properties")).get("result")).get("type", "string") if promised else "string"
    return {"result": text if kind == "string" or document is ABSENT else document}


def _phrase(status: int | None) -> str:
    try:
        return HTTPStatus(status or 0).phrase
    except ValueError:  # a status nobody has named
        return ""
