"""OpenTelemetry exports: OTLP JSON, lines of it, and what the SDKs' console exporters print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flakestorm.importers.spans import Span, Traced, traced
from flakestorm.wire.shape import items, obj, objects

__all__ = ["recognises", "traces"]

_RESOURCES = ("resourceSpans", "resource_spans")
_LOGS = ("resourceLogs", "resource_logs")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_LOG_SCOPES = ("scopeLogs", "scope_logs")


def recognises(document: Any) -> bool:
    """Whether a document is such an export."""
    if isinstance(document, list):
        return bool(document) and recognises(document[0])
    if not isinstance(document, dict):
        return False
    return any(name in document for name in (*_RESOURCES, *_LOGS, "spans")) or _is_span(document)


def traces(document: Any) -> list[Traced]:
    """The runs of an export, one per trace, in order of appearance.

    Raises:
        ValueError: the schema is not what it was expected to be, or a trace holds nothing to import; the message says
            where.
    """
    found: dict[str, list[Span]] = {}
    events: list[tuple[str, str, Mapping[str, Any]]] = []
    for where, raw in _raw(document):
        if "body" in raw or "eventName" in raw:
            events.append(_event(raw))
            continue
        trace, span = _span(raw, where)
        found.setdefault(trace, []).append(span)
    if not found:
        raise ValueError("it holds no spans: resourceSpans[].scopeSpans[].spans[] was expected")
    by_id = {span.id: span for spans in found.values() for span in spans}
    for key, name, attributes in events:
        if key in by_id:
            by_id[key].events.append((name, attributes))
    made, refused = [], []
    for trace, spans in found.items():
        try:
            made.append(traced(trace, spans))
        except ValueError as error:
            refused.append(f"trace {trace}: {error}")
    if not made:
        raise ValueError(refused[0])
    return made


def _raw(document: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Spans and log records, as they stand."""
    if isinstance(document, list):
        for index, item in enumerate(document):
            yield from _raw(item, f"[{index}]")
        return
    if not isinstance(document, dict):
        raise ValueError(f"{where or 'it'} is no OpenTelemetry export: an object was expected")
    if _is_span(document):
        yield where or "the span", document
    for outer, inner, leaf in ((_RESOURCES, _SCOPES, ("spans",)), (_LOGS, _LOG_SCOPES, ("logRecords", "log_records"))):
        for name, resource in _items(document, outer, where):
            for at, scope in _items(resource, inner, name):
                yield from _items(scope, leaf, at)
    if isinstance(document.get("spans"), list):
        yield from _items(document, ("spans",), where)


def _items(document: dict[str, Any], names: tuple[str, ...], where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    name = next((name for name in names if name in document), None)
    if name is None:
        return
    listed = document[name]
    if not isinstance(listed, list):
        raise ValueError(f"{where}{'.' if where else ''}{name} must be a list")
    for index, item in enumerate(listed):
        at = f"{where}{'.' if where else ''}{name}[{index}]"
        if not isinstance(item, dict):
            raise ValueError(f"{at} must be an object")
        yield at, item


def _is_span(document: dict[str, Any]) -> bool:
    named = any(key in document for key in ("spanId", "span_id")) or isinstance(document.get("context"), dict)
    return named and "name" in document


def _span(raw: dict[str, Any], where: str) -> tuple[str, Span]:
    context = raw.get("context") if isinstance(raw.get("context"), dict) else raw
    trace, key = (_first(context, *names) for names in (("traceId", "trace_id"), ("spanId", "span_id")))
    if not isinstance(key, str) or not key:
        raise ValueError(f"{where}.spanId: the id of the span was expected")
    status = raw.get("status") if isinstance(raw.get("status"), dict) else {}
    events = [_named(event) for event in objects(raw.get("events"))]
    failed = str(_first(status, "code", "status_code") or "").upper() in ("2", "ERROR", "STATUS_CODE_ERROR")
    words = str(_first(status, "message", "description") or "") or _exception(events)
    span = Span(
        id=key,
        parent=str(_first(raw, "parentSpanId", "parent_span_id", "parent_id") or ""),
        name=str(raw.get("name") or ""),
        start=_when(_first(raw, "startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time")),
        attributes=_attributes(raw.get("attributes"), where),
        error=(words or "the span's status is an error") if failed else "",
        events=events,
    )
    return str(trace or ""), span


def _event(raw: dict[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
    attributes = _attributes(raw.get("attributes"), "a log record")
    body = _value(raw.get("body")) if isinstance(raw.get("body"), dict) else raw.get("body")
    name = raw.get("eventName") or raw.get("event_name") or attributes.get("event.name") or ""
    more = body if isinstance(body, dict) else {} if body is None else {"content": body}
    return str(_first(raw, "spanId", "span_id") or ""), str(name), {**attributes, **more}


def _named(event: dict[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return str(event.get("name") or ""), _attributes(event.get("attributes"), "an event")


def _exception(events: list[tuple[str, Mapping[str, Any]]]) -> str:
    return next(
        (str(of.get("exception.message") or of.get("exception.type")) for n, of in events if n == "exception"), ""
    )


def _attributes(value: Any, where: str) -> dict[str, Any]:
    """Attributes from OTLP's list of keys and typed values, or from a plain object."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return {str(key): _value(item) if _typed(item) else item for key, item in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) and "key" in item for item in value):
        return {str(item["key"]): _value(item.get("value")) for item in value}
    raise ValueError(f"{where}.attributes: a list of {{key, value}} or an object was expected")


def _typed(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).endswith(("Value", "_value"))


def _value(value: Any) -> Any:
    if not _typed(value):
        return value
    ((kind, inner),) = value.items()
    kind = kind.replace("_", "").lower()
    if kind == "intvalue":
        try:
            return int(inner)
        except (TypeError, ValueError, OverflowError):
            return inner
    if kind == "arrayvalue":
        return [_value(item) for item in items(obj(inner).get("values"))]
    if kind == "kvlistvalue":
        return {str(item.get("key")): _value(item.get("value")) for item in objects(obj(inner).get("values"))}
    return inner


def _first(document: Any, *names: str) -> Any:
    return next((document[name] for name in names if document.get(name) not in (None, "")), None)


def _when(value: Any) -> str:
    """Nanoseconds are compared as numbers, times of day as they are written."""
    text = str(value or "")
    return text.zfill(24) if text.isdecimal() else text
