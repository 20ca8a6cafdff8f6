"""The Model Context Protocol: JSON-RPC 2.0 between an agent and its tool servers, in the 2025 and 2026 revisions.

A message is a request (it has an id and wants an answer), a notification (no id) or an answer. Over streamable HTTP one
POST carries one message, and its reply is the answer, as a document or as the last event of a stream that brought
progress before it. Over stdio a message is a line; a seam that holds such a server makes one call of each request, and
its reply is the answer's line, after the lines that belong to it where there are any (`application/x-ndjson`).

The 2026 revision has neither handshake nor sessions: requests carry what `initialize` said in `params._meta`, and a
server that needs something from its client answers `input_required` and is asked again. Both are read alike here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs

import orjson

from flakestorm.core.call import Call, Reply, header
from flakestorm.wire.base import Asked, Edit, Failure, Said
from flakestorm.wire.frames import Framer, sse_framing
from flakestorm.wire.shape import Doc, dump, obj, objects, parse, string
from flakestorm.wire.sse import events, looks_like_sse

__all__ = [
    "ANSWER",
    "BATCH",
    "LATER",
    "OPEN",
    "WORK",
    "Mcp",
    "Message",
    "answered_elsewhere",
    "housekeeping",
    "identify",
    "key_of",
    "messages",
    "name_of",
    "read",
    "result_text",
    "to_client",
    "works",
]

WORK = frozenset(("tools/call", "resources/read", "prompts/get"))
"""The methods by which an agent has a server do something for it. All others are the protocol's own housekeeping."""

ANSWER = "response"
"""The name of a message that answers a request of the other side, where it travels as a call of its own."""

BATCH = "batch"
"""The name of several messages in one body, which the revision 2025-03-26 allowed and no later one does."""

LATER = "LATER"
"""The method of a call to the client's own end that is to reach it only after the answer which is being given."""

OPEN = "OPEN"
"""The method of a call that wants the stream of an HTTP+SSE session held open in the server's place. Its body is the
event by which the recorded stream began."""

_METHODS = frozenset(
    (
        "completion/complete",
        "elicitation/create",
        "initialize",
        "logging/setLevel",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "roots/list",
        "sampling/createMessage",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
    )
)
"""What no other protocol on JSON-RPC asks for. `ping` and `tasks/*` are not among them."""

_NOTIFICATIONS = ("notifications/",)
_HEADERS = ("mcp-session-id", "mcp-protocol-version", "mcp-method")
_SESSION = ("session_id", "sessionId")


@dataclass(frozen=True, slots=True)
class Message:
    """One JSON-RPC message.

    Args:
        kind: `request`, `notification` or `answer`.
        method: empty for an answer.
        key: the id (`key_of`); empty for a notification.
        params: of a request or a notification; empty where there are none.
        document: the whole message.
    """

    kind: Literal["request", "notification", "answer"]
    method: str
    key: str
    params: Doc = field(repr=False)
    document: Doc = field(repr=False)


def read(data: bytes) -> Message | None:
    """The message these bytes are; None if they are anything else."""
    document = parse(data)
    if document is None or document.get("jsonrpc") != "2.0":
        return None
    method, key = document.get("method"), key_of(document.get("id"))
    if isinstance(method, str):
        return Message("request" if key else "notification", method, key, obj(document.get("params")), document)
    if "result" in document or "error" in document:
        return Message("answer", "", key, {}, document)
    return None


def key_of(value: object) -> str:
    """An id or a progress token as JSON text, so that `1` and `"1"` differ; empty for what can be neither."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return dump(value).decode()
    return ""


def name_of(message: Message) -> str:
    """What a message is called on a tape: the tool it calls, else its method."""
    if message.method == "tools/call" and (tool := string(message.params.get("name"))):
        return tool
    return message.method or ANSWER


def identify(call: Call) -> tuple[str, str] | None:
    """The name and the wire of an HTTP call that speaks this protocol; None if it does not.

    The wire is empty for the HTTP+SSE transport of 2024, whose replies to a POST say nothing: the answer comes on
    another connection, so there is no reply to understand or to change.
    """
    marked = any(header(call.headers, name) is not None for name in _HEADERS)
    if call.method != "POST":
        return (call.method, "") if marked and call.method in ("GET", "DELETE") else None
    if b'"jsonrpc"' not in call.body:
        return None
    wire = Mcp.name if marked or "text/event-stream" in (header(call.headers, "accept") or "").lower() else ""
    message = read(call.body)
    if message is None:
        several = _batch(call.body)
        return (BATCH, "") if several and all(_ours(one, marked=marked) for one in several) else None
    if not _ours(message, marked=marked or _in_session(call.url)):
        return None
    return name_of(message), wire


def answered_elsewhere(call: Call) -> bool:
    """Whether the reply to this call is not the answer to what it asks; see `identify`."""
    return call.kind == "mcp" and call.method == "POST" and not call.wire


def works(call: Call) -> bool:
    """Whether a call of kind `mcp` has the server do something for the agent (see `WORK`)."""
    message = read(call.body)
    if message is None:  # of what cannot be read, only its name and its method can tell
        return call.method not in ("GET", "DELETE") and call.name != BATCH
    return message.method in WORK


def to_client(method: str, url: str) -> bool:
    """Whether a call is what a server says to its client, so that it is the agent that answers (`mcp_relay.py`)."""
    piped = url.startswith("stdio://") and url.endswith("/client")
    return method in ("CALL", LATER) and (piped or url.endswith("#client"))


def housekeeping(name: str) -> bool:
    """Whether a call of this name is the protocol's own, by the name alone: no tool is likely to be called so."""
    own = name in _METHODS - WORK or name.startswith(_NOTIFICATIONS)
    return own or name in ("ping", "GET", "DELETE", ANSWER, BATCH)


def messages(body: bytes) -> Iterator[Doc]:
    """The JSON objects of a reply, in order: the one document, the events' data, or the lines."""
    found: Iterable[Doc | None]
    if looks_like_sse(body, stream=False):
        found = (parse(event.data) for event in events(body) if event.data)
    elif (whole := parse(body)) is not None:
        found = iter((whole,))
    else:
        found = (parse(line) for line in body.splitlines())
    yield from (document for document in found if document is not None)


def result_text(result: Doc) -> str:
    """The text in a result: of a tool, of a resource, of a prompt. Empty where it holds none."""
    blocks = [*objects(result.get("content")), *objects(result.get("contents"))]
    blocks += [obj(message.get("content")) for message in objects(result.get("messages"))]
    return "\n".join(text for block in blocks if (text := string((obj(block.get("resource")) or block).get("text"))))


class Mcp:
    """The `mcp` wire. There is no model behind it, so what is about models is empty."""

    name = "mcp"

    def model_of(self, call: Call) -> str | None:
        """Never a model."""
        return None

    def recognises(self, call: Call) -> bool:
        """Whether this is an HTTP request of this protocol."""
        return identify(call) is not None

    def asked(self, body: bytes) -> Asked:
        """A request asks no model for anything."""
        return Asked()

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Read a reply. The text is that of the result, or the result itself where it is not made of text."""
        answer = next((doc for doc in messages(body) if "result" in doc or "error" in doc), None)
        if answer is None:
            return Said(complete=not body)  # a notification is answered by nothing
        if "error" in answer:
            return Said(error=string(obj(answer["error"]).get("message")) or dump(answer["error"]).decode())
        result = obj(answer["result"])
        text = result_text(result)
        if result.get("isError") is True:
            return Said(text, error=text or "the tool failed")
        return Said(text or dump(answer["result"]).decode())

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The JSON-RPC error a server answers with when it has failed."""
        message = read(call.body)
        error = {"code": -32603, "message": failure.message or "Internal error"}
        body = dump({"jsonrpc": "2.0", "id": None if message is None else message.document.get("id"), "error": error})
        headers = (("content-type", "application/json"), ("content-length", str(len(body))))
        return Reply(failure.status or 200, headers, body)

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> None:
        """Nothing: there is no model that could break off."""

    def blocked(self, call: Call, message: str = "") -> None:
        """Nothing: there is no prompt."""

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Events."""
        return sse_framing(start, media_type)

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """An edit is of a model's answer; there is none."""
        return reply


def _ours(message: Message, *, marked: bool) -> bool:
    return marked or message.method in _METHODS or message.method.startswith(_NOTIFICATIONS)


def _batch(body: bytes) -> list[Message]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    read_each = [read(dump(one)) for one in found] if isinstance(found, list) else []
    return [message for message in read_each if message is not None]


def _in_session(url: str) -> bool:
    query = parse_qs(url.partition("?")[2])
    return any(name in query for name in _SESSION)
