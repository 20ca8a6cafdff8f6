"""An agent that runs already: what listens on the usual ports, and what it says about itself.

A service that describes itself (`/openapi.json`) is only read. One that does not is asked: usual paths get one short
greeting, as `contract run` would send it, because there is no other way to know what an agent answers to.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from flakestorm.discovery.code import INPUT_KEYS

__all__ = ["PORTS", "Running", "described", "find"]

PORTS = (8000, 8080, 5000, 3000, 8001, 8008, 8888, 9000, 4000, 7860, 2024)
"""Where agents usually listen, likeliest first."""

_PATHS = ("/invoke", "/chat", "/ask", "/run", "/query", "/agent", "/api/chat", "/api/invoke", "/api/agent", "/")
_WORDS = ("invoke", "chat", "ask", "query", "agent", "message", "run", "generate", "answer", "respond")
_GREETING = "Hello"
_ANSWERS = ("output", "result", "response", "answer", "text", "content", "message")
_CONNECT_S, _READ_S, _ANSWER_S = 0.3, 3.0, 20.0
_MOST_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Running:
    """An agent that answers.

    Args:
        port, path: where.
        template: the body it takes, with `{prompt}`.
        answer: where its answer is; empty where the usual keys find it.
        how: how that is known, in words.
        health: the path of something that answers a GET; empty where there is none.
    """

    port: int
    path: str
    template: str = ""
    answer: str = ""
    how: str = ""
    health: str = ""


def find(ports: Iterable[int] = PORTS, *, greet: bool = True) -> Running | None:
    """The first agent there is on these ports of this machine.

    Args:
        ports: where to look.
        greet: whether services that do not describe themselves are asked.
    """
    open_ports = [port for port in ports if _listens(port)]
    for port in open_ports:
        status, document = _ask(port, "GET", "/openapi.json")
        if status == 200 and isinstance(document, dict) and (found := described(port, document)):
            return found
    for port in open_ports if greet else ():
        if found := _greeted(port):
            return found
    return None


def described(port: int, document: Mapping[str, Any]) -> Running | None:
    """What an OpenAPI document says: the operation that takes a text and is named most like an agent's."""
    paths = document.get("paths")
    found: list[tuple[int, int, Running]] = []
    for path, item in paths.items() if isinstance(paths, dict) else ():
        operation = item.get("post") if isinstance(item, dict) else None
        if not isinstance(operation, dict) or not isinstance(path, str) or "{" in path or "${" in path:
            continue
        template = _template(_schema(document, operation.get("requestBody")))
        if not template:
            continue
        rank = next((n for n, word in enumerate(_WORDS) if word in path.lower()), len(_WORDS))
        answer = _answer(_schema(document, _reply(operation)))
        running = Running(port, path, template, answer, "its /openapi.json", _health(paths))
        found.append((rank, len(path), running))
    return min(found, key=lambda each: each[:2])[2] if found else None


def _health(paths: Any) -> str:
    return next((path for path in ("/health", "/healthz", "/ready", "/ping", "/") if "get" in paths.get(path, ())), "")


def _reply(operation: Mapping[str, Any]) -> Any:
    replies = operation.get("responses")
    return replies.get("200") or replies.get("201") if isinstance(replies, dict) else None


def _schema(document: Mapping[str, Any], holder: Any) -> dict[str, Any]:
    """The JSON schema in a request or reply, its references followed."""
    content = holder.get("content") if isinstance(holder, dict) else None
    media = content.get("application/json") if isinstance(content, dict) else None
    return _followed(document, media.get("schema") if isinstance(media, dict) else None)


def _followed(document: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    for _ in range(10):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        schema = found
    if not isinstance(schema, dict):
        return {}
    properties = schema.get("properties")
    kept = (
        {k: _followed(document, v) for k, v in properties.items() if k != "properties"}
        if isinstance(properties, dict) and len(properties) < 100 and "$ref" not in json.dumps(properties)[:100_000]
        else properties
    )
    return {**schema, "properties": kept}  # fmt: skip


def _template(schema: Mapping[str, Any]) -> str:
    """A body that fits a schema, with `{prompt}` where the text goes; empty where no place for it is known."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ""
    body: dict[str, Any] = {}
    text = next((key for key in INPUT_KEYS if _is_text(properties.get(key))), "")
    if text:
        body[text] = "{prompt}"
    elif "messages" in properties:
        body["messages"] = [{"role": "user", "content": "{prompt}"}]
    else:
        return ""
    fillers: dict[str, Any] = {"string": "flakestorm", "integer": 1, "number": 1, "boolean": False, "array": [],
                               "object": {}}  # fmt: skip
    for key in schema.get("required") or ():
        kind = properties.get(key, {}).get("type") if isinstance(properties.get(key), dict) else None
        body.setdefault(str(key), fillers.get(str(kind), "flakestorm"))
    return json.dumps(body)


def _is_text(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("anyOf") if isinstance(schema.get("anyOf"), list) else [schema]
    return any(isinstance(kind, dict) and kind.get("type") == "string" for kind in kinds or ())


def _answer(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or any(key in properties for key in _ANSWERS):
        return ""
    texts = [key for key, value in properties.items() if _is_text(value)]
    return str(texts[0]) if len(texts) == 1 else ""


def _greeted(port: int) -> Running | None:
    for path in _PATHS:
        for key in INPUT_KEYS[:5]:
            status, reply = _ask(port, "POST", path, {key: _GREETING})
            if status in (0, 404, 405, 501):
                break
            if status < 300 and (isinstance(reply, str) or any(name in reply for name in _ANSWERS)):
                healthy = next((each for each in ("/health", "/healthz") if _ask(port, "GET", each)[0] == 200), "")
                how = f"it answered {json.dumps({key: _GREETING})}"
                return Running(port, path, json.dumps({key: "{prompt}"}), "", how, healthy)
    return None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(_CONNECT_S)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and content (a mapping or a text) of a reply; 0 where there was none."""
    limit_s = _READ_S if body is None else _ANSWER_S
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)) as connection:
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {"Content-Type": "application/json"} if sent else {})
            reply = connection.getresponse()
            raw = reply.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException):
            return 0, {}
        with suppress(ValueError, RecursionError):
            found = json.loads(raw)
            return reply.status, found if isinstance(found, (dict, str)) else {}
        is_text = (reply.getheader("Content-Type") or "").startswith("text/plain")
        return reply.status, raw.decode("utf-8", "replace") if is_text else {}
