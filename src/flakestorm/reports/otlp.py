"""Sending spans to an OpenTelemetry collector, or to whatever else takes OTLP over HTTP."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from flakestorm.errors import MissingExtra, Misuse, WorldFailed

__all__ = ["BATCH_BYTES", "HEADERS", "PROTOCOL", "batches", "headers_of", "send", "target"]

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
"""OpenTelemetry's own variables: headers as `key=value,key=value`; `http/json` (default) or `http/protobuf`."""

BATCH_BYTES = 2 * 1024 * 1024
TIMEOUT_S = 30
_MAX_REPLY = 64 * 1024


def send(document: Mapping[str, Any], endpoint: str, environ: Mapping[str, str]) -> int:
    """Send an `ExportTraceServiceRequest`, in batches; gives the number of spans sent.

    Args:
        document: in OTLP's JSON encoding.
        endpoint: the receiver's address; `/v1/traces` is added where it does not end so.
        environ: where `HEADERS` and `PROTOCOL` may be.

    Raises:
        Misuse: address, headers or protocol are wrong, or the receiver refuses what it got.
        WorldFailed: the receiver cannot be reached, or fails.
        MissingExtra: `http/protobuf` without the extra `otel`.
    """
    url, headers = target(endpoint), headers_of(environ.get(HEADERS, ""))
    protocol = environ.get(PROTOCOL, "").strip() or "http/json"
    if protocol not in ("http/json", "http/protobuf"):
        raise Misuse(f"{PROTOCOL}={protocol!r} is not available; set http/json or http/protobuf")
    sent = 0
    for spans, batch in batches(document):
        binary = protocol == "http/protobuf"
        content = _protobuf(batch) if binary else json.dumps(batch, ensure_ascii=False).encode()
        kind = "application/x-protobuf" if binary else "application/json"
        reply = _post(url, content, {"Content-Type": kind, "User-Agent": "flakestorm", **headers})
        _check(url, b"" if binary else reply)
        sent += spans
    return sent


def target(endpoint: str) -> str:
    """Where traces are posted to.

    Raises:
        Misuse: it is no http address.
    """
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Misuse(f"{endpoint!r} is no address of an OTLP receiver; give e.g. http://localhost:4318")
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith("/v1/traces") else f"{path}/v1/traces").geturl()


def headers_of(text: str) -> dict[str, str]:
    """Headers from `key=value,key=value`, percent-encoded.

    Raises:
        Misuse: it is not so; the message shows no value.
    """
    found = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip() or not unquote(value).isprintable():
            raise Misuse(f"{HEADERS} must be key=value,key=value; its part {key.strip()[:40]!r} is not")
        found[key.strip()] = unquote(value.strip())
    return found


def batches(document: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The document in parts of about `BATCH_BYTES`, each with its number of spans; a span is never split."""
    for resource in document["resourceSpans"]:
        for scoped in resource["scopeSpans"]:
            spans: list[Any] = []
            size = 0
            for span in scoped["spans"]:
                length = len(json.dumps(span))
                if spans and size + length > BATCH_BYTES:
                    yield len(spans), _with(resource, scoped, spans)
                    spans, size = [], 0
                spans.append(span)
                size += length
            if spans:
                yield len(spans), _with(resource, scoped, spans)


def _with(resource: Mapping[str, Any], scoped: Mapping[str, Any], spans: list[Any]) -> dict[str, Any]:
    return {"resourceSpans": [{**resource, "scopeSpans": [{**scoped, "spans": spans}]}]}


def _protobuf(document: Mapping[str, Any]) -> bytes:
    """The same in protobuf. Its ids are hexadecimal in OTLP's JSON, and base64 in protobuf's own."""
    try:
        from google.protobuf.json_format import ParseDict
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as error:
        raise MissingExtra(f"{PROTOCOL}=http/protobuf", "otel") from error
    message = ParseDict(_base64_ids(document), ExportTraceServiceRequest())
    return bytes(message.SerializeToString())


def _base64_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_base64_ids(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: b64encode(bytes.fromhex(item)).decode()
        if key in ("traceId", "spanId", "parentSpanId")
        else _base64_ids(item)
        for key, item in value.items()
    }


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """A redirection is an error like any other: headers with keys go nowhere else."""


def _post(url: str, content: bytes, headers: Mapping[str, str]) -> bytes:
    request = Request(url, data=content, headers=dict(headers), method="POST")  # noqa: S310 - http or https, see target
    try:
        with build_opener(_Stay).open(request, timeout=TIMEOUT_S) as reply:
            found: bytes = reply.read(_MAX_REPLY)
            return found
    except HTTPError as error:
        with error:
            said = error.read(300).decode("utf-8", "replace").strip()
        message = f"{url} answered {error.code}{f': {said}' if said else ''}"
        if error.code < 500 and error.code != 429:
            raise Misuse(f"{message}; check the address, and {HEADERS} for its key") from None
        raise WorldFailed(message) from None
    except (URLError, OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise WorldFailed(f"{url} cannot be reached: {reason}; is the collector running?") from None


def _check(url: str, reply: bytes) -> None:
    """A receiver may take a request and leave out some of its spans.

    Raises:
        WorldFailed: it did.
    """
    try:
        said = json.loads(reply or b"{}")
        partial = said.get("partialSuccess") or {}
        rejected = int(partial.get("rejectedSpans") or 0)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return
    if rejected:
        raise WorldFailed(
            f"{url} left out {rejected} spans: {str(partial.get('errorMessage') or 'no reason given')[:300]}"
        )
