"""OTLP JSON, in the spellings that exporters have for it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from flakestorm.importers.files import read_runs
from flakestorm.importers.otel import recognises, traces
from importers_support import DATA

ASKED = [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "hello"}], "finish_reason": "stop"}]
PLAIN = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4",
    "gen_ai.usage.input_tokens": 52,
    "gen_ai.input.messages": json.dumps(ASKED),
    "gen_ai.output.messages": json.dumps(SAID),
}


def typed(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": typed(v)} for k, v in value.items()]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def otlp(attributes: dict[str, Any], trace: str = "t1", **more: Any) -> dict[str, Any]:
    span = {"traceId": trace, "spanId": "a", "name": "chat gpt-4", "startTimeUnixNano": "17",
            "attributes": [{"key": k, "value": typed(v)} for k, v in attributes.items()], **more}  # fmt: skip
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}


STRUCTURED = {**PLAIN, "gen_ai.input.messages": ASKED, "gen_ai.output.messages": SAID}
CONSOLE = {"name": "chat", "context": {"trace_id": "t1", "span_id": "a"}, "parent_id": None, "attributes": PLAIN}


@pytest.mark.parametrize(
    "document",
    [
        otlp(PLAIN),
        otlp(STRUCTURED),
        [otlp(PLAIN)],
        CONSOLE,
        [CONSOLE],
        {"spans": [CONSOLE]},
        json.loads(
            json.dumps(otlp(PLAIN)).replace("resourceSpans", "resource_spans").replace("scopeSpans", "scope_spans")
        ),
    ],
)
def test_every_spelling_says_the_same(document: Any) -> None:
    assert recognises(document)
    (run,) = traces(document)
    assert (run.id, run.input, run.output, len(run.crossings)) == ("t1", "hi", "hello", 1)


def test_messages_in_log_records() -> None:
    document = otlp({k: v for k, v in PLAIN.items() if "messages" not in k})
    record = {"traceId": "t1", "spanId": "a", "eventName": "gen_ai.client.inference.operation.details",
              "attributes": [{"key": k, "value": typed(v)} for k, v in STRUCTURED.items()]}  # fmt: skip
    document["resourceLogs"] = [{"scopeLogs": [{"logRecords": [record]}]}]
    assert traces(document)[0].output == "hello"


def test_traces_stand_apart_and_one_that_holds_nothing_is_passed_over() -> None:
    found = traces([otlp(PLAIN), otlp(PLAIN, "t2", spanId="b"), otlp({}, "t3", spanId="c")])
    assert [run.id for run in found] == ["t1", "t2"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"resourceSpans": {}}, "resourceSpans must be a list"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}, "scopeSpans[0].spans[0].spanId"),
        (otlp(PLAIN) | {"resourceSpans": []}, "it holds no spans"),
        (
            {"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": "a", "name": "x", "attributes": 7}]}]}]},
            "attributes",
        ),
        (otlp({}), "trace t1: no span in it is a model's"),
    ],
)
def test_a_changed_schema_is_named_with_its_place(document: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        traces(document)


def test_lines_as_collectors_write_them(tmp_path: Any) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join(json.dumps(otlp(PLAIN, f"t{n}", spanId=f"s{n}")) for n in (1, 2)))
    name, runs = read_runs(file)
    assert (name, len(runs)) == ("otel", 2)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the real data is not at {DATA}")
def test_the_conventions_own_examples() -> None:
    page = (DATA / "otel/semconv/non-normative/examples-llm-calls.md").read_text()
    blocks = [json.loads(block) for block in re.findall(r"```json\n(\[.*?\])\n```", page, re.DOTALL)]
    asked = [block for block in blocks if any(m.get("role") == "user" for m in block)]
    said = [block for block in blocks if all(m.get("role") == "assistant" for m in block)]
    assert len(asked) >= 5
    for before, after in zip(asked, said, strict=False):
        of = {**PLAIN, "gen_ai.input.messages": json.dumps(before), "gen_ai.output.messages": json.dumps(after)}
        (run,) = traces(otlp(of))
        assert len(run.crossings) == 1
        assert run.input
