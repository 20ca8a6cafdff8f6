"""A report as OpenTelemetry spans: OTLP/JSON by the GenAI conventions, a trace per run.

The run is an `invoke_agent` span, every exchange below it a `chat` or `execute_tool` span (or a plain HTTP client's), a
fault an event at the exchange that it hit, a verdict a `gen_ai.evaluation.result` event of the run. One more span is
the report's, with its scores, and every run links to it.

Where an agent that is traced itself sends `traceparent`, the exchange links to the agent's span, and the run takes the
agent's trace id where that is nobody else's: so a backend shows both in one trace.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from flakestorm.engine.events import CellResult, Report, RunResult
from flakestorm.reports.genai import Conversation, meaning, messages
from flakestorm.reports.text import plain
from flakestorm.version import __version__
from flakestorm.wire import gen_ai

__all__ = ["Taped", "Tapes", "document", "otel"]

Doc = dict[str, Any]

_PARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2


@dataclass(frozen=True, slots=True)
class Taped:
    """What a run's tape tells.

    Args:
        started_at: when the run began, UTC, ISO 8601; empty where that is not known.
        exchanges: in the shape of `flakestorm-tape/1`'s `exchanges`.
    """

    started_at: str = ""
    exchanges: Sequence[Mapping[str, Any]] = ()


Tapes: TypeAlias = Callable[[RunResult], Taped]


def otel(report: Report, *, tapes: Tapes, conversation: Conversation) -> str:
    """The report as OTLP/JSON text; the arguments are those of `document`."""
    return json.dumps(document(report, tapes=tapes, conversation=conversation), ensure_ascii=False)


def document(report: Report, *, tapes: Tapes, conversation: Conversation) -> Doc:
    """The report as an `ExportTraceServiceRequest` in OTLP's JSON encoding.

    Args:
        report: what was found out.
        tapes: gives what a run's tape tells.
        conversation: reads the messages in a model request.
    """
    taped = {run.id: tapes(run) for run in report.runs}
    own = _own_traces(taped)
    whole = _whole(report)
    cells: dict[str, list[CellResult]] = {}
    for cell in report.cells:
        cells.setdefault(cell.run, []).append(cell)
    spans = [whole]
    for run in report.runs:
        trace = own.get(run.id) or _id(report, 16, "trace", run.id)
        maker = _Run(report, run, taped[run.id], trace, conversation)
        spans += maker.spans(cells.get(run.id, ()), _link(whole["traceId"], whole["spanId"], "the report of this run"))
    resource = _attributes({"service.name": "flakestorm", "service.version": report.version or __version__})
    scoped = {"scope": {"name": "flakestorm", "version": __version__}, "spans": spans}
    found: Doc = plain({"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scoped]}]})
    return found


def _own_traces(taped: Mapping[str, Taped]) -> dict[str, str]:
    """The agent's trace id, by run: where a run's calls name one, and no other run's calls name the same."""
    named = {id_: {p[0] for e in t.exchanges if (p := _parent(e)) is not None} for id_, t in taped.items()}
    counts = Counter(trace for traces in named.values() for trace in traces)
    return {id_: next(iter(traces)) for id_, traces in named.items() if len(traces) == 1 and counts[min(traces)] == 1}


def _whole(report: Report) -> Doc:
    scores = {
        f"flakestorm.score.{name}.{part}": getattr(score, part)
        for name, score in report.scores.items()
        for part in ("value", "low", "high", "passed", "conclusive", "inconclusive")
    }
    said = {
        "flakestorm.command": report.command, "flakestorm.verdict": report.verdict,
        "flakestorm.headline": report.headline, "flakestorm.seed": report.seed, "flakestorm.config": report.config,
        "flakestorm.agent": report.agent, "flakestorm.runs": len(report.runs), **scores,
    }  # fmt: skip
    start = _nanos(report.started_at, 0)
    return {
        "traceId": _id(report, 16, "report"),
        "spanId": _id(report, 8, "report"),
        "name": f"flakestorm {report.command}",
        "kind": _INTERNAL,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + _ns(report.duration_ms)),
        "attributes": _attributes(said),
        **({"status": {"code": _ERROR, "message": report.headline}} if report.verdict == "fail" else {}),
    }


class _Run:
    """The spans of one run."""

    def __init__(self, report: Report, run: RunResult, taped: Taped, trace: str, conversation: Conversation) -> None:
        self.report, self.run, self.taped, self.trace = report, run, taped, trace
        self.conversation = conversation
        self.root = _id(report, 8, "run", run.id)
        self.start = _nanos(taped.started_at or report.started_at, 0)
        last = max((e["t_ms"] + e["duration_ms"] for e in taped.exchanges), default=0.0)
        self.end = self.start + _ns(max(run.latency_ms, last))

    def spans(self, cells: Sequence[CellResult], link: Doc) -> Iterator[Doc]:
        run = self.run
        failed = [cell for cell in cells if cell.verdict == "fail"]
        words = run.error or "; ".join(f"{c.invariant}: {c.reason}" for c in failed)
        said = {
            gen_ai.OPERATION: gen_ai.INVOKE_AGENT,
            "gen_ai.agent.name": self.report.agent or None,
            gen_ai.INPUT: messages([{"role": "user", "content": run.input}]),
            gen_ai.OUTPUT: None if run.error else messages([{"role": "assistant", "content": run.output}]),
            "error.type": run.error.partition(":")[0] if run.error else None,
            "flakestorm.run": run.id, "flakestorm.scenario": run.scenario, "flakestorm.prompt": run.prompt,
            "flakestorm.trial": run.trial, "flakestorm.planned": run.planned, "flakestorm.reproduce": run.reproduce,
        }  # fmt: skip
        verdicts = [
            _event(self.end, "gen_ai.evaluation.result", {
                "gen_ai.evaluation.name": cell.invariant, "gen_ai.evaluation.score.label": cell.verdict,
                "gen_ai.evaluation.explanation": cell.reason, "flakestorm.severity": cell.severity,
                "flakestorm.also_fails_without_chaos": cell.also_fails_without_chaos,
            })
            for cell in cells
        ]  # fmt: skip
        at_calls = {(fault["site"], fault["mode"]) for exchange in self.taped.exchanges for fault in exchange["faults"]}
        alone = [
            _fault(self.start, "flakestorm.fault", str(f.site), f.mode, f.detail)
            for f in run.fired
            if (str(f.site), f.mode) not in at_calls  # it hit the agent's input, or the run has no tape
        ]
        masked = [_fault(self.end, "flakestorm.fault.masked", str(f.site), f.mode, f.detail) for f in run.masked]
        yield {
            "traceId": self.trace,
            "spanId": self.root,
            "name": gen_ai.INVOKE_AGENT,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(self.start),
            "endTimeUnixNano": str(self.end),
            "attributes": _attributes(said),
            "events": [*alone, *verdicts, *masked],
            "links": [link],
            **({"status": {"code": _ERROR, "message": words}} if words else {}),
        }
        for number, exchange in enumerate(self.taped.exchanges):
            yield self._exchange(number, exchange)

    def _exchange(self, number: int, exchange: Mapping[str, Any]) -> Doc:
        start = self.start + _ns(exchange["t_ms"])
        reply, parent = exchange["reply"], _parent(exchange)
        name, said = meaning(exchange, self.conversation)
        status, broken = reply["status"], reply.get("error")
        wrong = str(broken or "") or (f"status {status}" if status >= 400 else "")
        address = urlsplit(exchange["request"]["url"])
        said |= {
            gen_ai.SERVER: address.hostname if address.scheme in ("http", "https") else None,
            "server.port": _port(address.netloc) if address.scheme in ("http", "https") else None,
            "http.response.status_code": status or None,
            "error.type": (str(status) if status >= 400 else "broken") if wrong else None,
            "flakestorm.site": exchange["site"],
            "flakestorm.lane": exchange["lane"] or None,
            "flakestorm.sent": exchange["sent"],
            "flakestorm.world.text": None if exchange["world"] is None else exchange["world"]["text"],
            "flakestorm.note": exchange["note"] or None,
        }
        faults = [_fault(start, "flakestorm.fault", f["site"], f["mode"], f["detail"]) for f in exchange["faults"]]
        links = [] if parent is None else [_link(*parent, "the agent's own span", _header(exchange, "tracestate"))]
        return {
            "traceId": self.trace,
            "spanId": _id(self.report, 8, "exchange", self.run.id, str(number)),
            "parentSpanId": self.root,
            "name": name,
            "kind": _INTERNAL if exchange["request"]["method"] == "CALL" else _CLIENT,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + _ns(exchange["duration_ms"])),
            "attributes": _attributes(said),
            "events": faults,
            "links": links,
            **({"status": {"code": _ERROR, "message": wrong}} if wrong else {}),
        }


def _header(exchange: Mapping[str, Any], name: str) -> str:
    return next((str(value) for key, value in exchange["request"]["headers"] if key.lower() == name), "")


def _parent(exchange: Mapping[str, Any]) -> tuple[str, str] | None:
    """Trace and span of the agent's own that a call was made in, as its `traceparent` says."""
    match = _PARENT.fullmatch(_header(exchange, "traceparent").strip())
    return None if match is None else (match[1], match[2])


def _link(trace: str, span: str, what: str, state: str = "") -> Doc:
    more = {"traceState": state} if state else {}
    return {"traceId": trace, "spanId": span, **more, "attributes": _attributes({"flakestorm.link": what})}


def _fault(at: int, name: str, site: str, mode: str, detail: str) -> Doc:
    said = {"flakestorm.site": site, "flakestorm.fault.mode": mode, "flakestorm.fault.detail": detail or None}
    return _event(at, name, said)


def _event(at: int, name: str, attributes: Doc) -> Doc:
    return {"timeUnixNano": str(at), "name": name, "attributes": _attributes(attributes)}


def _attributes(values: Mapping[str, Any]) -> list[Doc]:
    return [{"key": key, "value": _any(value)} for key, value in values.items() if value is not None]


def _any(value: Any) -> Doc:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(item) for item in value]}}
    return {"stringValue": str(value)}


def _port(netloc: str) -> int | None:
    try:
        return urlsplit(f"//{netloc}").port
    except ValueError:
        return None


def _nanos(moment: str, otherwise: int) -> int:
    try:
        return round(datetime.fromisoformat(moment).timestamp() * 1000) * 1_000_000
    except (ValueError, OverflowError, OSError):
        return otherwise


def _ns(ms: float) -> int:
    return round(ms * 1_000_000)


def _id(report: Report, size: int, *words: str) -> str:
    """An id that is the same whenever this report is exported, so that sending it twice makes no second trace."""
    base = "\0".join((report.command, report.config, report.started_at, str(report.seed), *words))
    return hashlib.sha256(base.encode("utf-8", "replace")).hexdigest()[: size * 2]
