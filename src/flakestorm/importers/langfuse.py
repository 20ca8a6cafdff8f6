"""Langfuse exports: a trace with its observations, as the page's download, the API and batch exports give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from flakestorm.importers.messages import parsed
from flakestorm.importers.spans import Span, Traced, traced
from flakestorm.wire.shape import items, objects

__all__ = ["recognises", "traces"]

_KINDS: Mapping[str, Literal["llm", "tool"]] = {"GENERATION": "llm", "TOOL": "tool"}
_STEPS = {"AGENT", "CHAIN", "EMBEDDING", "EVALUATOR", "EVENT", "GENERATION", "GUARDRAIL", "RETRIEVER", "SPAN", "TOOL"}


def recognises(document: Any) -> bool:
    """Whether a document is such an export."""
    if isinstance(document, list):
        return bool(document) and recognises(document[0])
    if not isinstance(document, dict):
        return False
    return "observations" in document or ("traceId" in document and "type" in document) or _listed(document) is not None


def traces(document: Any) -> list[Traced]:
    """The runs of an export.

    Raises:
        ValueError: the schema is not what it was expected to be, or a trace holds nothing to import; the message says
            where.
    """
    listed = _listed(document)
    if listed is not None:
        document = listed
    if isinstance(document, dict) and isinstance(document.get("traces"), list):
        return _grouped(items(document.get("observations")), objects(document["traces"]))
    if isinstance(document, list):
        if document and isinstance(document[0], dict) and "observations" not in document[0]:
            return _grouped(document)
        return [one for index, item in enumerate(document) for one in [_trace(item, f"[{index}]")]]
    return [_trace(document, "")]


def _listed(document: Any) -> list[Any] | None:
    """The list in a page of the API's."""
    data = document.get("data") if isinstance(document, dict) else None
    return data if isinstance(data, list) and data and isinstance(data[0], dict) and recognises(data[0]) else None


def _grouped(observations: list[Any], stated: Sequence[Mapping[str, Any]] = ()) -> list[Traced]:
    """The runs of observations that say which trace they are of, and what is stated of those traces."""
    found: dict[str, list[Span]] = {}
    for index, raw in enumerate(observations):
        span = _span(raw, f"[{index}]")
        found.setdefault(str(raw.get("traceId") or ""), []).append(span)
    about = {str(trace.get("id")): trace for trace in stated}
    if not found:
        raise ValueError("it holds no observations")
    made = []
    for key, spans in found.items():
        trace = about.get(key, {})
        made.append(traced(key, spans, input=trace.get("input"), output=trace.get("output")))
    return made


def _trace(document: Any, where: str) -> Traced:
    if not isinstance(document, dict) or not isinstance(document.get("observations"), list):
        raise ValueError(f"{where or 'it'} is no Langfuse trace: a list of 'observations' was expected")
    inner = document.get("trace")
    trace = inner if isinstance(inner, dict) else document
    spans = [_span(raw, f"{where}observations[{index}]") for index, raw in enumerate(document["observations"])]
    try:
        return traced(str(trace.get("id") or ""), spans, input=trace.get("input"), output=trace.get("output"))
    except ValueError as error:
        raise ValueError(f"{where}{' ' if where else ''}trace {trace.get('id') or '?'}: {error}") from None


def _span(raw: Any, where: str) -> Span:
    if not isinstance(raw, dict):
        raise ValueError(f"{where} must be an object")
    key, kind = raw.get("id"), raw.get("type")
    if not isinstance(key, str):
        raise ValueError(f"{where}.id: the id of the observation was expected")
    if not isinstance(kind, str) or kind.upper() not in _STEPS:
        raise ValueError(f"{where}.type: one of {', '.join(sorted(_STEPS))} was expected, and it is {kind!r}")
    attributes = dict(_attributes(raw))
    attributes |= {"model": raw["model"]} if raw.get("model") else {}
    return Span(
        id=key,
        parent=str(raw.get("parentObservationId") or ""),
        name=str(raw.get("name") or ""),
        start=str(raw.get("startTime") or ""),
        attributes=attributes,
        kind=_KINDS.get(kind.upper(), ""),
        input=_input(raw),
        output=parsed(raw.get("output")),
        usage=_usage(raw),
        error=str(raw.get("statusMessage") or "an error") if raw.get("level") == "ERROR" else "",
    )


def _input(raw: Mapping[str, Any]) -> Any:
    """What it was given. Of a tool's run LangChain's handler has that as Python wrote it, and beside it as it is."""
    given, metadata = parsed(raw.get("input")), parsed(raw.get("metadata"))
    beside = metadata.get("inputs") if isinstance(metadata, dict) else None
    return beside if isinstance(given, str) and isinstance(beside, dict) else given


def _attributes(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = parsed(raw.get("metadata"))
    attributes = parsed(metadata.get("attributes")) if isinstance(metadata, dict) else None
    return attributes if isinstance(attributes, dict) else {}


def _usage(raw: Mapping[str, Any]) -> tuple[Any, Any]:
    for name in ("usageDetails", "usage"):
        said = parsed(raw.get(name))
        if isinstance(said, dict) and said:
            return said.get("input", said.get("promptTokens")), said.get("output", said.get("completionTokens"))
    return raw.get("promptTokens", raw.get("inputUsage")), raw.get("completionTokens", raw.get("outputUsage"))
