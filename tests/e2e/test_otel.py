"""A report as spans, by the real command: to a receiver on loopback, into a file, and back from it."""

import json
import re
import shlex
import socket
from pathlib import Path

import pytest

from e2e_support import flakestorm, sdk_agent, world, write_config
from upstream import document

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
AGENT = f"""
import httpx, os

def answer(text):
    headers = {{"traceparent": "00-{TRACE}-{SPAN}-01"}}
    return httpx.get(os.environ["SEARCH_URL"], headers=headers).text
"""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "opentelemetry.md"
CHAOS = [{"name": "calm"}, {"name": "down", "tool_faults": [{"tool": "search", "mode": "error"}]}]


@pytest.fixture
def up():
    with world() as upstream:
        upstream.reply("/otlp/v1/traces", document({}))
        upstream.reply("/v1/traces", document({}))
        yield upstream


def judged(folder, up, **agent):
    write_config(
        folder,
        agent=agent or sdk_agent(up),
        boundary={"tools": {"search": "*/search*"}},
        contract={"name": "x", "invariants": [{"id": "done", "type": "completes"}], "chaos_matrix": CHAOS},
    )
    done = flakestorm(folder, "contract", "run", report=True, env={"SEARCH_URL": f"{up.url}/search"})
    assert done.code == 0, done.err
    return done


def spans_of(document):
    return [s for r in document["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]


def value(span, key):
    return next((next(iter(a["value"].values())) for a in span["attributes"] if a["key"] == key), None)


def test_a_receiver_gets_runs_exchanges_faults_and_verdicts(tmp_path, up) -> None:
    judged(tmp_path, up)
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "x-token=secret"}
    done = flakestorm(tmp_path, "report", "latest", "--otel-endpoint", f"{up.url}/otlp", env=env)
    assert done.code == 0, done.err
    [request] = [r for r in up.requests if r.path == "/otlp/v1/traces"]
    assert {k.lower(): v for k, v in request.headers.items()}["x-token"] == "secret"
    spans = spans_of(request.json())
    assert f"sent {len(spans)} spans of 2 runs to {up.url}/otlp/v1/traces" in done.out
    runs = [span for span in spans if span["name"] == "invoke_agent"]
    assert [value(run, "flakestorm.scenario") for run in runs] == ["calm", "down"]
    assert [e["name"] for run in runs for e in run["events"]] == ["gen_ai.evaluation.result"] * 2
    below = {run["spanId"]: [s["name"] for s in spans if s.get("parentSpanId") == run["spanId"]] for run in runs}
    assert below[runs[0]["spanId"]] == ["chat gpt-4o", "execute_tool search", "chat gpt-4o"]
    [fault] = [event for span in spans for event in span.get("events", ()) if event["name"] == "flakestorm.fault"]
    assert value(fault, "flakestorm.site") == "tool/search#1"
    assert value(fault, "flakestorm.fault.mode") == "error"


def test_the_agents_traceparent_ties_both_traces(tmp_path, up) -> None:
    (tmp_path / "traced.py").write_text(AGENT)
    judged(tmp_path, up, type="python", endpoint="traced:answer")
    assert [r.headers["traceparent"] for r in up.requests if r.path == "/search"] == [f"00-{TRACE}-{SPAN}-01"]
    done = flakestorm(tmp_path, "report", "latest", "--format", "otel")
    tools = [span for span in spans_of(json.loads(done.out)) if span["name"] == "execute_tool search"]
    assert len(tools) == 2
    for tool in tools:
        assert [(link["traceId"], link["spanId"]) for link in tool["links"]] == [(TRACE, SPAN)]


def test_the_file_is_imported_again(tmp_path, up) -> None:
    judged(tmp_path, up)
    assert flakestorm(tmp_path, "report", "latest", "-o", "spans.otlp.json").code == 0
    done = flakestorm(tmp_path, "tapes", "import", "spans.otlp.json", "--from", "otel", "-o", "back")
    assert done.code == 0, done.err
    shown = json.loads(flakestorm(tmp_path, "tapes", "show", "back/spans.otlp.tape", "--format", "json").out)
    sites = [exchange["site"] for exchange in shown["exchanges"]]
    assert sites[:3] == ["llm/gpt-4o#1", "tool/search#1", "llm/gpt-4o#2"]
    assert shown["exchanges"][0]["reply"]["tool_calls"][0]["name"] == "search"


def test_a_receiver_that_is_not_there_is_said_so(tmp_path, up) -> None:
    judged(tmp_path, up)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        done = flakestorm(tmp_path, "report", "latest", "--otel-endpoint", url)
    assert done.code == 3
    assert f"{url}/v1/traces cannot be reached" in done.err
    assert flakestorm(tmp_path, "report", "latest", "--otel-endpoint", "localhost").code == 2
    assert flakestorm(tmp_path, "report", "latest", "--otel-endpoint", url, "-o", "x").code == 2


def test_what_the_page_shows_runs(tmp_path, up) -> None:
    judged(tmp_path, up)
    lines = re.findall(r"^\$ flakestorm (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line.replace("http://localhost:4318", up.url))
        done = flakestorm(tmp_path, *words)
        assert done.code == 0, f"{line}: {done.out}{done.err}"
    assert up.count("/v1/traces") == 1
