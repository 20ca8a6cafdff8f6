from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from flakestorm.demo.server import Answer, Ask, serving


def ask(url: str, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port)
    connection.request(method, path, body=body, headers=headers)
    reply = connection.getresponse()
    found = reply.status, reply.read(), str(reply.getheader("content-type"))
    connection.close()
    return found


def echo(ask: Ask) -> Answer:
    if ask.path == "/crash":
        raise LookupError("no such thing")
    if ask.path == "/stream":
        return Answer(events=("data: one\n\n", "data: two\n\n"))
    return Answer(201, {"method": ask.method, "path": ask.path, "query": dict(ask.query), "body": ask.body})


def test_a_request_is_read_and_an_answer_is_written() -> None:
    with serving(echo) as url:
        status, body, kind = ask(url, "POST", "/a?to=S%C3%A3o+Paulo", b'{"x": [1, "\xc3\xa9"]}')
    assert (status, kind) == (201, "application/json")
    said: Any = json.loads(body)
    assert said == {"method": "POST", "path": "/a", "query": {"to": "São Paulo"}, "body": {"x": [1, "é"]}}


def test_without_a_body_there_is_none() -> None:
    with serving(echo) as url:
        assert json.loads(ask(url, "GET", "/")[1])["body"] is None


def test_events_are_streamed() -> None:
    with serving(echo) as url:
        assert ask(url, "GET", "/stream") == (200, b"data: one\n\ndata: two\n\n", "text/event-stream")


def test_bad_requests_and_crashes_are_answered() -> None:
    with serving(echo) as url:
        assert ask(url, "POST", "/", b"{")[0] == 400
        assert ask(url, "POST", "/", b"", **{"content-length": "99999999"})[0] == 413
        status, body, _ = ask(url, "GET", "/crash")
    assert status == 500
    assert json.loads(body) == {"error": "LookupError: no such thing"}


def test_a_client_that_leaves_stops_nobody() -> None:
    with serving(echo) as url:
        parts = urlsplit(url)
        gone = http.client.HTTPConnection(str(parts.hostname), parts.port)
        gone.putrequest("POST", "/")
        gone.putheader("content-length", "10")
        gone.endheaders()
        gone.close()
        assert ask(url, "GET", "/")[0] == 201
