"""Bodies and headers as recorders stored them, made to fit each other again.

Recorders treat compressed bodies in every possible way: stored packed with the header, unpacked with the header left
in place, packed with the header filtered out. An imported exchange has one form: the plain body, no content encoding,
and a content length that is true, so that whoever reads or replays the tape sees a message that could have been sent.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flakestorm.core.call import Headers, header, with_header, without_headers
from flakestorm.wire.encoding import MAX_DECODED_BYTES, decode_body
from flakestorm.wire.shape import dump
from flakestorm.wire.sse import events, looks_like_sse

__all__ = ["body_of", "fields_of", "pieces", "plain"]

_GZIP = b"\x1f\x8b"
_TEXTUAL = re.compile(r"(?i)$|text/|application/(json|x-ndjson|jsonl|x-www-form-urlencoded)|[^;]*\+json")
_LINE_ENDS = re.compile(r"[\r\n\0]+")
_MAX_PIECES = 1_000_000  # a stream of more is kept in one piece
_WRAPPER = {"string", "base64_string", "encoding"}
_LATIN = {"iso-8859-1", "iso8859-1", "latin-1", "latin1"}


def body_of(message: Mapping[str, Any]) -> bytes:
    """The body of a stored request or response, as the bytes the recorder kept.

    It may be a text, bytes, a list of chunks, a wrapper (`string` or `base64_string`, and an `encoding`), or the JSON
    value itself, under `parsed_body` or in the body's place. HTTPX's recorder once called it `content`.

    Raises:
        ValueError: it is none of these.
    """
    if message.get("parsed_body") is not None:
        return _json(message["parsed_body"])
    body = message.get("body", message.get("content"))
    if isinstance(body, dict):
        if not body or not body.keys() <= _WRAPPER:
            return _json(body)
        if isinstance(packed := body.get("base64_string"), (str, bytes)):
            return _from_base64(packed)
        return _bytes(body.get("string"), str(body.get("encoding") or ""))
    return _bytes(body)


def fields_of(value: Any) -> Headers:
    """Header fields from a mapping (name to value or values), pairs, or lines.

    Raises:
        ValueError: it is none of these.
    """
    if value is None:
        return ()
    if isinstance(value, dict):
        pairs = [(n, one) for n, many in value.items() for one in (many if isinstance(many, list) else [many])]
    elif isinstance(value, list):
        pairs = [_pair(item) for item in value]
    else:
        raise ValueError("it must be a mapping or a list")
    return tuple((_word(name), _word(one)) for name, one in pairs)


def plain(headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    """The message without content encoding, its content length true.

    A body that cannot be unpacked here (brotli, damaged from its first byte) stays as it is, with its header.

    Raises:
        ValueError: it unpacks to more than anybody could read.
    """
    if not body:
        return headers, body  # the length may speak of the body a HEAD request did not get
    if header(headers, "content-encoding") is not None:
        headers, body = _unpacked(headers, body)
    elif body.startswith(_GZIP) and _TEXTUAL.match(header(headers, "content-type") or ""):
        headers, body = _unpacked((*headers, ("content-encoding", "gzip")), body)
    length = str(len(body))
    return tuple((name, length if name.lower() == "content-length" else value) for name, value in headers), body


def pieces(headers: Headers, body: bytes) -> tuple[Headers, list[bytes]]:
    """The headers, and the body in pieces: one per event of a stream, else one.

    Recorders keep a stream as one text, and some drop the header that says what it is; then it is put back, because
    clients go by it.
    """
    kind = (header(headers, "content-type") or "").split(";")[0].strip().lower()
    if not kind and looks_like_sse(body, stream=False):
        kind = "text/event-stream"
        headers = with_header(headers, "content-type", kind)
    if kind == "application/vnd.amazon.eventstream":
        return headers, list(_messages(body))
    if body.count(b"\n") > _MAX_PIECES:
        return headers, [body]
    if kind == "text/event-stream":
        return headers, [event.raw for event in events(body)]
    if kind == "application/x-ndjson":
        return headers, body.splitlines(keepends=True)
    return headers, [body] if body else []


def _messages(body: bytes) -> Iterator[bytes]:
    """The messages of an AWS event stream, each of which begins with its length; the last piece is what is no more."""
    at, count = 0, 0
    while at < len(body):
        size_bytes = int.from_bytes(body[at : at + 4])
        count += 1
        end = at + size_bytes if size_bytes >= 16 and count < _MAX_PIECES else len(body)
        yield body[at:end]
        at = end


def _unpacked(headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    bare = without_headers(headers, "content-encoding")
    if _is_text(body):  # stored unpacked; packed data is never UTF-8
        return bare, body
    unpacked = decode_body(body, headers)
    if len(unpacked) > MAX_DECODED_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_DECODED_BYTES >> 20} MB")
    if not unpacked or unpacked is body:
        return headers, body
    return bare, unpacked


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json(value: Any) -> bytes:
    try:
        return dump(value)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("it holds what JSON has no spelling for") from None


def _bytes(value: Any, encoding: str = "") -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        if encoding.lower() in _LATIN:
            try:
                return value.encode("latin-1")
            except UnicodeEncodeError:
                pass  # not what it says it is; UTF-8 holds every text
        return value.encode("utf-8", "replace")
    if isinstance(value, list) and not any(isinstance(part, (list, dict)) for part in value):
        return b"".join(_bytes(part) for part in value)
    raise ValueError("it must be text, bytes, JSON, or {string: ...}")


def _from_base64(text: str | bytes) -> bytes:
    try:
        return b64decode("".join(text.split()) if isinstance(text, str) else b"".join(text.split()), validate=True)
    except ValueError:
        raise ValueError("its base64_string is not base64") from None


def _pair(item: Any) -> tuple[Any, Any]:
    if isinstance(item, str) and ":" in item:
        name, _, value = item.partition(":")
        return name, value
    if isinstance(item, Iterable) and not isinstance(item, (str, bytes, dict)) and len(parts := list(item)) == 2:
        return parts[0], parts[1]
    raise ValueError("each must be a pair or a line 'Name: value'")


def _word(value: Any) -> str:
    """A name or a value as a header may carry it: on one line."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    elif isinstance(value, bool):
        value = str(value).lower()
    elif value is None or isinstance(value, (int, float)):
        value = "" if value is None else str(value)
    if not isinstance(value, str):
        raise ValueError("names and values must be text")
    return _LINE_ENDS.sub(" ", value).strip()
