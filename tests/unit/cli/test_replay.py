"""`flakestorm replay`, called in process; tests/e2e/test_replay.py runs it for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from flakestorm.tape.reader import Tape
from unit_cli import run
from upstream import Upstream, document

AGENT = """
def search(q):
    raise RuntimeError("the live tool ran")

TOOLS = {"search": search}

def answer(text):
    return f"{text}: {search('x')}"
"""
CONFIG = """
version: "2.0"
agent: {{type: python, endpoint: "{module}:answer", tools: "{module}:TOOLS"}}
golden_prompts: [hello]
contract: {{name: promises, invariants: [{{type: contains, value: found}}]}}
"""
OTEL = {
    "resourceSpans": [{"scopeSpans": [{"spans": [
        {"traceId": "t", "spanId": "a", "name": "chat", "startTimeUnixNano": "1", "attributes": {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
            "gen_ai.input.messages": [{"role": "user", "content": "hi"}],
            "gen_ai.output.messages": [{"role": "assistant", "content": "ho"}]}},
        {"traceId": "t", "spanId": "b", "name": "execute_tool search", "startTimeUnixNano": "2", "attributes": {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": "found it"}},
    ]}]}]
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    module = f"replayed_{abs(hash(request.node.name))}"
    (tmp_path / f"{module}.py").write_text(AGENT)
    (tmp_path / "flakestorm.yaml").write_text(CONFIG.format(module=module))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_import_then_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "trace.json").write_text(json.dumps(OTEL))
    assert run("replay", "import", "trace.json", "-o", "kept") == 0
    kept = yaml.safe_load((project / "kept" / "trace.yaml").read_text())
    assert (kept["input"], kept["contract"], kept["source"]) == ("hi", "promises", "otel")
    assert run("replay", "run", "kept", "-q") == 0
    assert run("tapes", "import", "trace.json", "-o", "tapes") == 0
    assert Tape.open(project / "tapes" / "trace.tape").input == "hi"
    assert run("replay", "run", "tapes", "-q") == 0
    capsys.readouterr()
    (project / "wrong.json").write_text("{}")
    assert run("replay", "import", "wrong.json") == 2
    assert "wrong.json: its form is not known" in capsys.readouterr().err


def test_sources_of_the_config(project: Path) -> None:
    (project / "trace.json").write_text(json.dumps(OTEL))
    config = project / "flakestorm.yaml"
    config.write_text(f"{config.read_text()}replays: {{sources: [{{type: otel, file: trace.json}}]}}\n")
    assert run("replay", "run", "-q") == 0
    assert run("replay", "run", "trace", "-q") == 0


def test_langsmith(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    root = {
        "id": "r1",
        "trace_id": "r1",
        "run_type": "chain",
        "inputs": {"input": "hi"},
        "outputs": None,
        "error": "boom",
    }
    tool = {"id": "c", "trace_id": "r1", "parent_run_id": "r1", "run_type": "tool", "name": "search",
            "inputs": {"q": 1}, "outputs": {"output": "found it"}, "start_time": "2026-01-01"}  # fmt: skip
    monkeypatch.setenv("NO_PROXY", "*")
    with Upstream() as up:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", up.url)
        assert run("replay", "run", "--from-langsmith", "r1") == 2
        assert "LANGSMITH_API_KEY" in capsys.readouterr().err
        monkeypatch.setenv("LANGSMITH_API_KEY", "k")
        up.reply("/runs/r1", document(root))
        up.reply("/runs/query", document({"runs": [root, tool]}))
        up.reply("/sessions", document([{"id": "p"}]))
        assert run("replay", "run", "--from-langsmith", "r1", "-o", "kept") == 0
        kept = yaml.safe_load((project / "kept" / "langsmith-r1.yaml").read_text())
        assert (kept["input"], kept["expected_failure"]) == ("hi", "boom")
        assert kept["tool_responses"] == [{"tool": "search", "response": "found it"}]
        assert run("replay", "run", "--from-langsmith-project", "prod", "--run", "-q") == 0
        assert (project / "sessions" / "langsmith-r1.yaml").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ("kept", "--from-langsmith", "r"),
        ("--from-langsmith", "r", "--from-langsmith-project", "p"),
        ("--filter-status", "error"),
        ("--from-langsmith", "r", "--filter-status", "error"),
    ],
)
def test_options_that_do_not_fit(project: Path, words: tuple[str, ...]) -> None:
    assert run("replay", "run", *words) == 2
