"""JSON over HTTP on the loopback, from the standard library: just enough for the demo's three servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

__all__ = ["Answer", "Ask", "Handler", "listen", "serving"]

LIMIT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: method, path, query parameters and the body read as JSON (None where there is none)."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply: a JSON value, or `events` to be streamed as server-sent events, each its own chunk."""

    status: int = 200
    body: Any = None
    events: tuple[str, ...] = ()


Handler = Callable[[Ask], Answer]


def listen(handler: Handler, *, port: int = 0) -> ThreadingHTTPServer:
    """A server on 127.0.0.1, bound but not yet serving; port 0 takes a free one."""

    class Connection(_Connection):
        answer = staticmethod(handler)

    return _Server(("127.0.0.1", port), Connection)


@contextmanager
def serving(handler: Handler) -> Iterator[str]:
    """Serve in a thread while entered; yields the server's URL."""
    server = listen(handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client may hold its connection open; the demo ends anyway
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news, under chaos least of all."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answer: Handler

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """The demo's terminal belongs to flakestorm."""

    def _serve(self) -> None:
        target = urlsplit(self.path)
        size = int(self.headers.get("content-length") or 0)
        if size > LIMIT_BYTES:
            self.close_connection = True
            return self._send(Answer(413, {"error": f"a request body is at most {LIMIT_BYTES} bytes"}))
        raw = self.rfile.read(size)
        try:
            body = json.loads(raw) if raw else None
        except ValueError as error:
            return self._send(Answer(400, {"error": f"the body is not JSON: {error}"}))
        ask = Ask(self.command, target.path, dict(parse_qsl(target.query)), body)
        try:
            answer = self.answer(ask)
        except Exception as error:  # as every web framework does
            answer = Answer(500, {"error": f"{type(error).__name__}: {error}"})
        return self._send(answer)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        if answer.events:
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for event in answer.events:
                chunk = event.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")
            return
        content = json.dumps(answer.body).encode()
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
