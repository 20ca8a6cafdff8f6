import json
from dataclasses import replace

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from flakestorm.core.call import Call, Reply
from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.importers import otel as importer
from flakestorm.importers.messages import conversation
from flakestorm.importers.taping import exchanges_of
from flakestorm.reports.otel import Taped, document, otel
from flakestorm.tape.document import document as shown
from report_samples import empty, hostile, sample

JSON = (("content-type", "application/json"),)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = ("traceparent", f"00-{TRACE}-{SPAN}-01")


def body(value) -> bytes:
    return json.dumps(value).encode()


def asked(headers=(), **more) -> Call:
    said = {"model": "claude-x", "system": "be brief", "messages": [{"role": "user", "content": "to Oslo"}], **more}
    return Call("POST", "https://api.anthropic.com/v1/messages", (*JSON, *headers), body(said))


ANSWER = Reply(200, JSON, body({
    "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "tool_use",
    "content": [{"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "t1", "name": "search", "input": {"to": "Oslo"}}],
    "usage": {"input_tokens": 7, "output_tokens": 5},
}))  # fmt: skip
TOOL = Call("GET", "https://travel.example/search?to=Oslo", (("tracestate", "a=b"), PARENT), b"")
MCP = Call("POST", "https://mcp.example/mcp", JSON, body(
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "book", "arguments": {"seat": 3}}}
), kind="mcp", name="book")  # fmt: skip


def taped(*crossings) -> Taped:
    found = exchanges_of(crossings, tools=[("search", "*/search*")])
    for at, exchange in enumerate(found):
        exchange.t_ms, exchange.duration_ms = 10.0 * at, 4.0
    found[0].faults = (Firing(Site("llm", "claude-x", 1), "refusal", "llm", detail="politely"),)
    return Taped("2026-05-04T10:00:01Z", [shown(exchange) for exchange in found])


def exported(report=None, *crossings):
    given = taped(*(crossings or ((asked(), ANSWER), (TOOL, Reply(503, JSON, b'{"error": "down"}')))))
    tapes = {(report or sample()).runs[0].id: given}
    found = document(report or sample(), tapes=lambda run: tapes.get(run.id, Taped()), conversation=conversation)
    ParseDict(found, ExportTraceServiceRequest())  # every field is OTLP's, of the right type
    return found["resourceSpans"][0]["scopeSpans"][0]["spans"]


def of(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def test_runs_exchanges_faults_and_verdicts() -> None:
    whole, run, llm, tool, *others = exported()
    assert len(others) == len(sample().runs) - 1
    assert of(whole)["flakestorm.score.contract.low"] == 55.1
    assert whole["status"]["code"] == 2
    assert run["links"][0]["spanId"] == whole["spanId"]
    assert (run["name"], of(run)["gen_ai.operation.name"]) == ("invoke_agent", "invoke_agent")
    assert run["startTimeUnixNano"] == "1777888801000000000"
    verdicts = {of(e)["gen_ai.evaluation.name"]: of(e)["gen_ai.evaluation.score.label"] for e in run["events"]}
    cells = [cell for cell in sample().cells if cell.run == "r-0001"]
    assert verdicts == {cell.invariant: cell.verdict for cell in cells}
    assert llm["parentSpanId"] == tool["parentSpanId"] == run["spanId"]
    assert llm["traceId"] == run["traceId"] != whole["traceId"]
    assert int(tool["startTimeUnixNano"]) - int(run["startTimeUnixNano"]) == 10_000_000
    [fault] = llm["events"]
    assert of(fault) == {
        "flakestorm.site": "llm/claude-x#1",
        "flakestorm.fault.mode": "refusal",
        "flakestorm.fault.detail": "politely",
    }
    assert (tool["status"]["message"], of(tool)["error.type"]) == ("status 503", "503")


def test_a_fault_that_hit_no_call_is_at_the_run() -> None:
    hit = Firing(Site("llm", "claude-x", 1), "refusal", "llm", detail="politely")
    other = Firing(Site("agent", "input", 1), "memory_poisoning", "context")
    masked = Firing(Site("tool", "search", 1), "slow", "tool")
    first = replace(sample().runs[0], fired=(hit, other), masked=(masked,))
    _, run, *_ = exported(replace(sample(), runs=(first,), cells=()))
    assert [(e["name"], of(e)["flakestorm.fault.mode"]) for e in run["events"]] == [
        ("flakestorm.fault", "memory_poisoning"),
        ("flakestorm.fault.masked", "slow"),
    ]


def test_a_model_call_follows_the_conventions() -> None:
    _, _, llm, *_ = exported()
    said = of(llm)
    assert llm["name"] == "chat claude-x"
    assert said["gen_ai.provider.name"] == "anthropic"
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == ("7", "5")
    assert said["gen_ai.response.finish_reasons"] == {"values": [{"stringValue": "tool_use"}]}
    assert json.loads(said["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
        {"role": "user", "parts": [{"type": "text", "content": "to Oslo"}]},
    ]
    assert json.loads(said["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Let me see."},
                {"type": "tool_call", "id": "t1", "name": "search", "arguments": {"to": "Oslo"}},
            ],
            "finish_reason": "tool_use",
        }
    ]


def test_tools_of_every_kind() -> None:
    function = Call("CALL", "python://pay", JSON, body({"sum": 3}), kind="tool", name="pay")
    plain = Call("GET", "https://other.example/x", (), b"")
    spans = exported(
        None, (asked(), CallFailed("reset", "gone")), (TOOL, ANSWER), (MCP, ANSWER), (function, ANSWER), (plain, ANSWER)
    )
    llm, search, book, pay, other = spans[2:7]
    assert (llm["status"]["message"], of(llm)["error.type"]) == ("CallFailed: reset: gone", "broken")
    assert "gen_ai.output.messages" not in of(llm)
    assert [span["name"] for span in (search, book, pay)] == [f"execute_tool {n}" for n in ("search", "book", "pay")]
    given = [json.loads(of(span)["gen_ai.tool.call.arguments"]) for span in (search, book, pay)]
    assert given == [{"to": "Oslo"}, {"seat": 3}, {"sum": 3}]
    assert of(book)["mcp.method.name"] == "tools/call"
    assert (pay["kind"], "url.full" in of(pay)) == (1, False)
    assert (other["kind"], of(other)["url.full"]) == (3, "https://other.example/x")
    assert "gen_ai.operation.name" not in of(other)


def test_the_agents_own_trace_is_joined_and_its_span_linked() -> None:
    _, run, llm, tool, *others = exported()
    assert run["traceId"] == llm["traceId"] == tool["traceId"] == TRACE
    assert all(span["traceId"] != TRACE for span in others)
    [link] = tool["links"]
    assert (link["traceId"], link["spanId"], link["traceState"]) == (TRACE, SPAN, "a=b")
    assert llm["links"] == []
    assert tool["parentSpanId"] == run["spanId"]


def test_a_trace_that_several_runs_share_or_that_is_none_is_only_linked() -> None:
    report = sample()
    given = taped((asked((PARENT,)), ANSWER))
    found = document(report, tapes=lambda _: given, conversation=conversation)
    spans = found["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len({span["traceId"] for span in spans}) == len(report.runs) + 1
    assert [link["traceId"] for span in spans for link in span.get("links", ())].count(TRACE) == len(report.runs)
    for wrong in ("", "00-xyz", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01"):
        [llm] = exported(None, (asked((("traceparent", wrong),)), ANSWER))[2:3]
        assert llm["links"] == []


def test_the_same_report_has_the_same_ids() -> None:
    assert exported() == exported()
    ids = [span["spanId"] for span in exported()]
    assert len(set(ids)) == len(ids)
    moved = exported(replace(sample(), started_at="2026-05-04T10:00:01Z"))
    assert moved[0]["spanId"] not in ids


def test_it_is_read_back() -> None:
    text = otel(
        replace(sample(), runs=sample().runs[:1]),
        tapes=lambda _: taped((asked(), ANSWER), (TOOL, Reply(200, JSON, b'{"flights": 3}'))),
        conversation=conversation,
    )
    [run] = importer.traces(json.loads(text))
    assert run.id == TRACE
    assert run.input == sample().runs[0].input
    assert run.output == sample().runs[0].output
    (llm, said), (tool, result) = run.crossings
    assert [m["role"] for m in json.loads(llm.body)["messages"]] == ["system", "user"]
    call = json.loads(said.body)["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("search", {"to": "Oslo"})
    assert (tool.name, json.loads(tool.body), json.loads(result.body)) == ("search", {"to": "Oslo"}, {"flights": 3})


def test_whatever_was_said_it_is_json() -> None:
    for report in (hostile(), empty()):
        text = otel(report, tapes=lambda _: Taped(), conversation=conversation)
        ParseDict(json.loads(text.encode()), ExportTraceServiceRequest())
