"""A scripted upstream on loopback: the world that the agents of these tests call.

Every request is written down before it is answered, so a test can say "not one request got through"::

    with Upstream() as up:
        client = OpenAI(base_url=f"{up.url}/v1", api_key="test")
        ...
        assert up.count("/v1/chat/completions") == 1

It speaks OpenAI chat (`/v1/chat/completions`) and Anthropic messages (`/v1/messages`) out of the box, whole or streamed
as the request asks, and says `HELLO`. Other answers are scripted per path; the last one of a path repeats::

    up.reply("/v1/chat/completions", openai_chat(tool_calls=[("c1", "search", {"q": "Oslo"})]), openai_chat("Done."))
    up.reply("/search", text("busy", status=503), document({"hits": 3}))
    up.reply("/echo", lambda request: document({"you_said": request.json()}))

Streams can be held: a `Gate` between two pieces stays shut until the test opens it, which proves without sleeping that
the first piece arrived before the second was sent. `HANG_UP` ends the connection in the middle of a reply, `RESET` does
so with a TCP reset.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

__all__ = [
    "HANG_UP",
    "HELLO",
    "RESET",
    "Canned",
    "Gate",
    "Request",
    "Upstream",
    "anthropic_for",
    "anthropic_messages",
    "anthropic_stream",
    "document",
    "openai_chat",
    "openai_for",
    "openai_stream",
    "redirect",
    "sse",
    "text",
]

HELLO = "Hello from upstream."
PATIENCE_S = 20.0
"""How long a shut gate is waited for before the test is declared stuck."""

ToolCall = tuple[str, str, Mapping[str, object] | str]
"""(call id, tool name, arguments as an object or as JSON text)."""


class Gate:
    """Stays shut until the test opens it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def open(self) -> None:
        self._event.set()

    def wait(self) -> bool:
        """Whether it was opened in time."""
        return self._event.wait(PATIENCE_S)


@dataclass(frozen=True)
class _Sign:
    name: str


HANG_UP = _Sign("hang up")
"""Among the pieces of a reply: close the connection here."""
RESET = _Sign("reset")
"""Among the pieces of a reply: reset the connection here (TCP RST). As the only piece: before any reply."""

Piece = bytes | Gate | _Sign


@dataclass(frozen=True)
class Canned:
    """A scripted reply.

    Args:
        pieces: sent one by one, each flushed before the next; a `Gate` holds the stream, a sign breaks it.
        status, headers: as sent; `content-length` or chunked framing is added.
        chunked: whether the pieces are sent as HTTP chunks; otherwise as one document of known length.
    """

    pieces: tuple[Piece, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = False


@dataclass(frozen=True)
class Request:
    """A request as it arrived. Header names are lower case."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Script = Canned | Callable[[Request], Canned]


@dataclass
class Upstream:
    """The server. `url` is its address without a trailing slash; everything else is said in the module's docstring."""

    requests: list[Request] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._scripts: dict[str, list[Script]] = {
            "/v1/chat/completions": [_default_openai],
            "/v1/messages": [_default_anthropic],
        }
        self._server: _Server | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="upstream", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()
        if error is None and self.problems:
            raise AssertionError(f"the upstream had problems: {self.problems}")

    @property
    def port(self) -> int:
        assert self._server is not None, "use the upstream as a context manager"
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many connections are open right now."""
        assert self._server is not None
        return self._server.open_connections

    def wait_connections(self, count: int) -> bool:
        """Wait until exactly this many connections are open; False if that never happens."""
        assert self._server is not None
        return self._server.wait_connections(count)

    def reply(self, path: str, *scripts: Script) -> None:
        """Answer requests to this path with these, in order; the last one repeats."""
        with self._lock:
            self._scripts[path] = list(scripts)

    def count(self, path: str | None = None) -> int:
        """How many requests arrived (on this path)."""
        with self._lock:
            return sum(path is None or request.path == path for request in self.requests)

    def answer(self, request: Request) -> Canned:
        """Write the request down and pick its reply."""
        with self._lock:
            self.requests.append(request)
            scripts = self._scripts.get(request.path)
            if not scripts:
                return document({"error": {"message": f"nothing is scripted for {request.path}"}}, status=404)
            script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        return script if isinstance(script, Canned) else script(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self.resetting: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)
        if upstream.tls is not None:  # the handshake is for the connection's own thread
            self.socket = upstream.tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._open.add(request)
            self._changed.notify_all()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        if request in self.resetting:  # no polite FIN first
            self.resetting.discard(request)
            self.close_request(request)
        else:
            super().shutdown_request(request)

    def close_request(self, request: Any) -> None:
        super().close_request(request)
        with self._changed:
            self._open.discard(request)
            self._changed.notify_all()

    @property
    def open_connections(self) -> int:
        with self._changed:
            return len(self._open)

    def wait_connections(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self._open) == count, PATIENCE_S)

    def hang_up(self) -> None:
        """Wake every handler that waits for a next request, and wait for them to finish."""
        with self._changed:
            waiting = list(self._open)
        for connection in waiting:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it was closed meanwhile
        if not self.wait_connections(0):
            self.upstream.problems.append("a connection is still being served")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave early are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class names it so
        """Tests have no access log."""

    def _serve(self) -> None:
        target = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, target.path, parse_qs(target.query), headers, self._read_body(headers))
        canned = self.server.upstream.answer(request)
        if canned.pieces[:1] in ((HANG_UP,), (RESET,)):
            self._break(canned.pieces[0])
            return
        self.send_response(canned.status)
        for name, value in canned.headers:
            self.send_header(name, value)
        if canned.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif canned.status not in (204, 304):
            self.send_header("Content-Length", str(sum(len(p) for p in canned.pieces if isinstance(p, bytes))))
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(canned)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = _serve

    def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(headers.get("content-length", 0)))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send_body(self, canned: Canned) -> None:
        for piece in canned.pieces:
            if isinstance(piece, Gate):
                if not piece.wait():
                    self.server.upstream.problems.append(f"a gate of {self.path} was never opened")
                    self.close_connection = True
                    return
            elif isinstance(piece, _Sign):
                self._break(piece)
                return
            elif piece:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if canned.chunked else piece)
                self.wfile.flush()
        if canned.chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _break(self, sign: Piece) -> None:
        self.close_connection = True
        if sign is RESET:  # linger on, zero seconds: close() sends RST
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.server.resetting.add(self.connection)


def text(body: str | bytes, *, status: int = 200, content_type: str = "text/plain; charset=utf-8") -> Canned:
    """A document of this text."""
    data = body.encode() if isinstance(body, str) else body
    return Canned((data,), status, (("Content-Type", content_type),))


def document(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Canned:
    """A JSON document."""
    extra = tuple((headers or {}).items())
    return Canned((json.dumps(value).encode(),), status, (("Content-Type", "application/json"), *extra))


def redirect(to: str, *, status: int = 302) -> Canned:
    """Look elsewhere."""
    return Canned((), status, (("Location", to),))


def sse(events: Iterable[object], *, named: bool = False, gates: Mapping[int, Gate] | None = None) -> Canned:
    """A stream of events, one HTTP chunk each.

    Args:
        events: objects (sent as JSON) or text (sent as it is).
        named: whether each event is preceded by `event: TYPE`, as Anthropic does.
        gates: before the event of this index, hold the stream.
    """
    pieces: list[Piece] = []
    for index, event in enumerate(events):
        if gates and index in gates:
            pieces.append(gates[index])
        data = event if isinstance(event, str) else json.dumps(event)
        name = f"event: {event['type']}\n" if named and isinstance(event, Mapping) else ""
        pieces.append(f"{name}data: {data}\n\n".encode())
    headers = (("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"))
    return Canned(tuple(pieces), 200, headers, chunked=True)


def openai_chat(
    content: str | None = HELLO,
    *,
    tool_calls: Sequence[ToolCall] = (),
    finish: str | None = None,
    model: str = "gpt-4o",
    usage: tuple[int, int] = (11, 7),
) -> Canned:
    """A whole chat completion. With tool calls the content defaults to none and the finish reason to `tool_calls`."""
    message: dict[str, object] = {"role": "assistant", "content": None if tool_calls and content is HELLO else content}
    if tool_calls:
        message["tool_calls"] = [_openai_call(call) for call in tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if tool_calls else "stop")}
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return document(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": model,
            "choices": [choice],
            "usage": counts,
        },
        headers={"x-request-id": "req_1"},
    )


def openai_stream(
    content: str | Sequence[str] = HELLO,
    *,
    tool_calls: Sequence[ToolCall] = (),
    finish: str | None = None,
    model: str = "gpt-4o",
    usage: tuple[int, int] | None = None,
    gates: Mapping[int, Gate] | None = None,
) -> Canned:
    """A streamed chat completion: a role event, one event per word (or per given part), finish, `[DONE]`.

    Args:
        tool_calls: streamed after the content: one event with id and name, then the arguments in two halves.
        gates: before the event of this index, hold the stream; event 0 carries the role, event 1 the first word.
    """
    words = [] if tool_calls and content is HELLO else _words(content)
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas.extend({"content": word} for word in words)
    for index, call in enumerate(tool_calls):
        call_id, name, arguments = call[0], call[1], _json_text(call[2])
        half = len(arguments) // 2
        head = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        for part in (arguments[:half], arguments[half:]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model}
    events: list[object] = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    reason = finish or ("tool_calls" if tool_calls else "stop")
    events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if usage is not None:
        counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        events.append({**base, "choices": [], "usage": counts})
    return sse([*events, "[DONE]"], gates=gates)


def anthropic_messages(
    content: str | None = HELLO,
    *,
    tool_calls: Sequence[ToolCall] = (),
    finish: str | None = None,
    model: str = "claude-sonnet-4-5",
    usage: tuple[int, int] = (11, 7),
) -> Canned:
    """A whole message. With tool calls the text defaults to none and the stop reason to `tool_use`."""
    blocks: list[dict[str, object]] = []
    if content is not None and not (tool_calls and content is HELLO):
        blocks.append({"type": "text", "text": content})
    for call_id, name, arguments in tool_calls:
        blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": json.loads(_json_text(arguments))})
    reason = finish or ("tool_use" if tool_calls else "end_turn")
    return document(_anthropic_message(model, blocks, reason, usage), headers={"request-id": "req_1"})


def anthropic_stream(
    content: str | Sequence[str] = HELLO,
    *,
    tool_calls: Sequence[ToolCall] = (),
    finish: str | None = None,
    model: str = "claude-sonnet-4-5",
    usage: tuple[int, int] = (11, 7),
    gates: Mapping[int, Gate] | None = None,
) -> Canned:
    """A streamed message. Event 0 is `message_start`, 1 the block's start, 2 the first word; gates hold by index."""
    start = {"type": "message_start", "message": _anthropic_message(model, [], None, (usage[0], 1))}
    blocks: list[tuple[dict[str, object], list[dict[str, object]]]] = []
    if not (tool_calls and content is HELLO):
        deltas: list[dict[str, object]] = [{"type": "text_delta", "text": word} for word in _words(content)]
        block: dict[str, object] = {"type": "text", "text": ""}
        blocks.append((block, deltas))
    for call_id, name, arguments in tool_calls:
        written = _json_text(arguments)
        halves = (written[: len(written) // 2], written[len(written) // 2 :])
        opening: dict[str, object] = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        fragments: list[dict[str, object]] = [{"type": "input_json_delta", "partial_json": half} for half in halves]
        blocks.append((opening, fragments))
    events: list[dict[str, object]] = [start]
    for index, (head, parts) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": head})
        events.extend({"type": "content_block_delta", "index": index, "delta": part} for part in parts)
        events.append({"type": "content_block_stop", "index": index})
    reason = finish or ("tool_use" if tool_calls else "end_turn")
    ending: dict[str, object] = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": usage[1]}})
    events.append({"type": "message_stop"})
    return sse(events, named=True, gates=gates)


def openai_for(asked: Mapping[str, Any]) -> Callable[..., Canned]:
    """What makes the answer that a request's document asks for, whole or streamed."""
    return openai_stream if asked.get("stream") else openai_chat


def anthropic_for(asked: Mapping[str, Any]) -> Callable[..., Canned]:
    """What makes the answer that a request's document asks for, whole or streamed."""
    return anthropic_stream if asked.get("stream") else anthropic_messages


def _default_openai(request: Request) -> Canned:
    return openai_for(request.json())()


def _default_anthropic(request: Request) -> Canned:
    return anthropic_for(request.json())()


def _anthropic_message(
    model: str, blocks: list[dict[str, object]], reason: str | None, usage: tuple[int, int]
) -> dict[str, object]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
    }


def _openai_call(call: ToolCall) -> dict[str, object]:
    return {"id": call[0], "type": "function", "function": {"name": call[1], "arguments": _json_text(call[2])}}


def _json_text(arguments: Mapping[str, object] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _words(content: str | Sequence[str]) -> list[str]:
    """The parts to stream: as given, or word by word with the blanks kept."""
    if not isinstance(content, str):
        return list(content)
    words = content.split(" ")
    return [word if index == 0 else f" {word}" for index, word in enumerate(words)]
