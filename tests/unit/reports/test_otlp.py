import json
import sys

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from flakestorm.errors import MissingExtra, Misuse, WorldFailed
from flakestorm.importers.messages import conversation
from flakestorm.reports import otlp
from flakestorm.reports.otel import Taped, document
from report_samples import sample
from upstream import RESET, Canned, Upstream
from upstream import document as canned

DOC = document(sample(), tapes=lambda _: Taped(), conversation=conversation)
SPANS = DOC["resourceSpans"][0]["scopeSpans"][0]["spans"]


@pytest.fixture
def up():
    with Upstream() as upstream:
        upstream.reply("/v1/traces", canned({}))
        yield upstream


def test_json_with_headers(up) -> None:
    assert otlp.send(DOC, up.url, {otlp.HEADERS: "x-key=a%20b, Other=c=d"}) == len(SPANS)
    [request] = up.requests
    assert request.json() == DOC
    headers = {key.lower(): value for key, value in request.headers.items()}
    assert (headers["x-key"], headers["other"], headers["content-type"]) == ("a b", "c=d", "application/json")


def test_protobuf(up) -> None:
    assert otlp.send(DOC, f"{up.url}/v1/traces", {otlp.PROTOCOL: "http/protobuf"}) == len(SPANS)
    [request] = up.requests
    read = ExportTraceServiceRequest.FromString(request.body)
    spans = read.resource_spans[0].scope_spans[0].spans
    assert [span.span_id.hex() for span in spans] == [span["spanId"] for span in SPANS]
    assert spans[1].links[0].trace_id.hex() == SPANS[0]["traceId"]


def test_it_goes_in_batches(up, monkeypatch) -> None:
    monkeypatch.setattr(otlp, "BATCH_BYTES", 3000)
    assert otlp.send(DOC, up.url, {}) == len(SPANS)
    sent = [s for r in up.requests for s in r.json()["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert len(up.requests) > 2
    assert sent == SPANS


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (canned({}, status=401), Misuse, "answered 401"),
        (canned({}, status=503), WorldFailed, "answered 503"),
        (canned({}, status=429), WorldFailed, "answered 429"),
        (canned({}, status=307, headers={"location": "/elsewhere"}), Misuse, "answered 307"),
        (
            canned({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}),
            WorldFailed,
            "2 spans: too old",
        ),
        (Canned((RESET,)), WorldFailed, "cannot be reached"),
    ],
)
def test_a_receiver_that_does_not_take_it_is_told_of(up, said, error, words) -> None:
    up.reply("/v1/traces", said)
    with pytest.raises(error, match=words):
        otlp.send(DOC, up.url, {})
    assert up.count("/elsewhere") == 0


def test_odd_replies_are_no_trouble(up) -> None:
    for body in ([], {"partialSuccess": None}, {"partialSuccess": {"rejectedSpans": "x"}}, "ok"):
        up.reply("/v1/traces", canned(body))
        assert otlp.send(DOC, up.url, {}) == len(SPANS)


@pytest.mark.parametrize("endpoint", ["", "localhost:4318", "file:///etc/passwd", "http://"])
def test_what_is_no_address_is_refused(endpoint) -> None:
    with pytest.raises(Misuse, match="no address of an OTLP receiver"):
        otlp.send(DOC, endpoint, {})


def test_addresses() -> None:
    assert otlp.target("http://h:4318/") == "http://h:4318/v1/traces"
    assert otlp.target("https://h/otlp?a=b") == "https://h/otlp/v1/traces?a=b"
    assert otlp.target("https://h/otlp/v1/traces") == "https://h/otlp/v1/traces"


def test_settings_that_are_wrong_are_named() -> None:
    for wrong in ("secret", "=x", "a=b%0d%0ac"):
        with pytest.raises(Misuse, match=otlp.HEADERS):
            otlp.headers_of(wrong)
    assert otlp.headers_of("") == {}
    with pytest.raises(Misuse, match="grpc"):
        otlp.send(DOC, "http://127.0.0.1:1", {otlp.PROTOCOL: "grpc"})


def test_protobuf_without_its_extra_names_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf.json_format", None)
    with pytest.raises(MissingExtra, match=r"flakestorm\[otel\]"):
        otlp.send(DOC, "http://127.0.0.1:1", {otlp.PROTOCOL: "http/protobuf"})


def test_the_file_is_what_is_sent() -> None:
    assert json.loads(json.dumps(DOC)) == DOC
