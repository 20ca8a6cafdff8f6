"""VCR cassettes: what vcrpy, pytest-recording, betamax and Ruby's VCR recorded.

They share one shape, a list of pairs of `request` and `response`, and differ in where the list is and how a URL, a
status, headers and a body are written. Everything vcrpy has written since 0.x is read, and so are the serializers that
keep JSON bodies parsed, and those that write what vcrpy hands them as it is: a list of `requests` beside a list of
`responses`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from flakestorm.core.call import Call, Reply
from flakestorm.importers.bodies import body_of, fields_of, pieces, plain

__all__ = ["MAX_BODY_BYTES", "crossings", "recognises"]

T = TypeVar("T")

MAX_BODY_BYTES = 256 * 2**20
"""All bodies of a cassette together, unpacked."""

_LISTS = ("interactions", "http_interactions")
_ASIDE = ("requests", "responses")
_METHOD = re.compile(r"[A-Za-z][A-Za-z-]{0,30}")
_PORTS = {"http": 80, "https": 443}


def recognises(document: Any) -> bool:
    """Whether a document is a cassette."""
    if isinstance(document, dict):
        return any(name in document for name in _LISTS) or all(name in document for name in _ASIDE)
    return isinstance(document, list) and bool(document) and isinstance(document[0], dict) and "request" in document[0]


def crossings(document: Any) -> list[tuple[Call, Reply]]:
    """The cassette's exchanges in the order they were recorded, a streamed reply in the pieces it was made of.

    Raises:
        ValueError: an exchange is missing something or is not HTTP; the message says where, on one line.
    """
    name, found = _list_of(document)
    made: list[tuple[Call, Reply]] = []
    total_bytes = 0
    for index, item in enumerate(found):
        where = f"{name}[{index}]"
        call, reply, size_bytes = _crossing(item, where)
        total_bytes += size_bytes
        if total_bytes > MAX_BODY_BYTES:
            raise ValueError(f"{where}: the bodies up to here unpack to more than {MAX_BODY_BYTES >> 20} MB")
        made.append((call, reply))
    return made


def _list_of(document: Any) -> tuple[str, list[Any]]:
    if isinstance(document, list):
        return "", document
    name = next((name for name in _LISTS if isinstance(document, dict) and name in document), None)
    if name is None and isinstance(document, dict) and all(isinstance(document.get(each), list) for each in _ASIDE):
        return "exchanges", _beside(*(document[each] for each in _ASIDE))
    if name is None:
        raise ValueError("it is not a VCR cassette: it has no list of 'interactions'")
    found = document[name]
    if not isinstance(found, list) and found is not None:
        raise ValueError(f"it is not a VCR cassette: its {name!r} is not a list")
    return name, found or []


def _beside(requests: list[Any], responses: list[Any]) -> list[Any]:
    if len(requests) != len(responses):
        raise ValueError(f"it has {len(requests)} 'requests' and {len(responses)} 'responses': they must be pairs")
    return [{"request": request, "response": said} for request, said in zip(requests, responses, strict=True)]


def _crossing(item: Any, where: str) -> tuple[Call, Reply, int]:
    if not isinstance(item, dict):
        raise ValueError(f"{where} is not a pair of request and response")
    if "direction" in item and "request" not in item:
        raise ValueError(f"{where} is a WebSocket message; only HTTP exchanges can be imported")
    request, response = (_part(item, part, where) for part in ("request", "response"))
    at = f"{where}.request"
    headers, body = _message(request, at)
    call = Call(_method(request, at), _address(request, at), headers, body)
    at = f"{where}.response"
    headers, content = _message(response, at)
    headers, chunks = pieces(headers, content)
    status, reason = _status(response, at)
    return call, Reply(status, headers, chunks, reason=reason), len(body) + len(content)


def _part(item: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    if not isinstance(found := item.get(name), dict):
        raise ValueError(f"{where} has no {name}")
    return found


def _message(message: dict[str, Any], where: str) -> Any:
    headers = _at(f"{where}.headers", fields_of, message.get("headers"))
    body = _at(f"{where}.body", body_of, message)
    return _at(f"{where}.body", lambda _: plain(headers, body), None)


def _at(where: str, read: Callable[[Any], T], value: Any) -> T:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _method(request: dict[str, Any], where: str) -> str:
    if not isinstance(method := request.get("method"), str) or not _METHOD.fullmatch(method):
        raise ValueError(f"{where}.method: it must be an HTTP method")
    return method.upper()


def _address(request: dict[str, Any], where: str) -> str:
    address = request.get("uri", request.get("url"))
    if address is None and isinstance(request.get("host"), str):  # before vcrpy 1.0 the parts stood alone
        scheme, port = str(request.get("protocol", "http")), request.get("port")
        tail = f":{port}" if isinstance(port, int) and port != _PORTS.get(scheme) else ""
        address = f"{scheme}://{request['host']}{tail}{request.get('path') or '/'}"
    if not isinstance(address, str) or not address.strip():
        raise ValueError(f"{where}.uri: it must be the URL of the request")
    return address.strip()


def _status(response: dict[str, Any], where: str) -> tuple[int, str]:
    status: Any = response.get("status", response.get("status_code"))
    reason: Any = ""
    if isinstance(status, dict):
        status, reason = status.get("code"), status.get("message")
    if isinstance(status, str) and status.isdecimal() and len(status) == 3:
        status = int(status)
    if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status <= 999:
        raise ValueError(f"{where}.status: it must be an HTTP status such as {{code: 200, message: OK}}")
    return status, " ".join(str(reason or "").split())
