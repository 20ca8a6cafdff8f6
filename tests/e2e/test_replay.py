"""Sessions replayed through the real command line: the model is live, the listed tools are not."""

import json
import re
import sys
from collections import Counter

import pytest
import yaml

from e2e_support import PROGRAMS, flakestorm, sdk_agent, world, write_config
from mcp_support import PLAIN

SEARCH = """
from pathlib import Path

def search(to: str) -> dict:
    with Path("asked.txt").open("a") as log:
        log.write(to + "\\n")
    return {"to": to, "flights": 3}

TOOLS = {"search": search}
"""
FUNCTIONS = (
    SEARCH
    + """
def answer(text: str) -> str:
    times = 2 if "twice" in text else 0 if "never" in text else 1
    try:
        found = [search(to="Oslo") for _ in range(times)]
    except (RuntimeError, TimeoutError, OSError) as error:
        return f"The search is unavailable: {type(error).__name__}: {error}"
    return f"I found {' and '.join(str(f['flights'] if isinstance(f, dict) else f) for f in found) or 'no'} flights."
"""
)
PYTHON = {"type": "python", "endpoint": "my_agent:answer", "tools": "my_agent:TOOLS"}


def contract(*invariants, name="travel"):
    return {"name": name, "invariants": list(invariants), "chaos_matrix": [{"name": "calm"}]}


def session(**keys):
    return {"id": "i-1", "input": "a flight to Oslo", "contract": "travel", **keys}


def python_project(folder, *invariants, sessions=()):
    (folder / "my_agent.py").write_text(FUNCTIONS)
    write_config(
        folder,
        agent=PYTHON,
        contract=contract(*(invariants or ({"id": "answers", "type": "contains", "value": "flights"},))),
        **({"replays": {"sessions": list(sessions)}} if sessions else {}),
    )


def live_calls(folder):
    file = folder / "asked.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_function_says_what_the_session_holds_and_never_runs(tmp_path) -> None:
    python_project(
        tmp_path,
        {"id": "many", "type": "contains", "value": "42"},
        {"id": "in-time", "type": "latency", "max_ms": 20000},
        sessions=[
            session(tool_responses=[{"tool": "search", "response": {"flights": 42}}]),
            session(id="i-2", input="twice", tool_responses=[
                {"tool": "search", "response": {"flights": 42}, "latency_ms": 9000},
                {"tool": "search", "response": "forty-three"},
            ]),
        ],
    )  # fmt: skip
    done = flakestorm(tmp_path, "replay", "run", report=True)
    assert done.code == 0, done.err + done.out
    assert [run["output"] for run in done.report["runs"]] == [
        "I found 42 flights.",
        "I found 42 and forty-three flights.",
    ]
    assert live_calls(tmp_path) == 0
    assert done.report["runs"][1]["latency_ms"] > 9000, "the recorded latency is part of the run's time"
    score = done.report["scores"]["replay"]
    assert (score["value"], score["passed"], score["conclusive"], score["inconclusive"]) == (1.0, 2, 2, 0)
    assert score["low"] < 1.0 <= score["high"]


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ({"response": {"error": "down"}, "status": 503}, "RuntimeError: 503 down"),
        ({"response": "no answer within 300 ms", "status": 0}, "TimeoutError: search: no answer within 300 ms"),
        ({"status": 0}, "ConnectionResetError: search: the connection broke"),
    ],
)
def test_a_recorded_failure_is_a_failure_and_rules_for_broken_tools_apply(tmp_path, response, said) -> None:
    rules = [
        {"id": "admits", "type": "regex", "pattern": "unavailable", "when": "tool_faults_active"},
        {"id": "finds", "type": "contains", "value": "I found", "when": "no_chaos"},
    ]
    python_project(tmp_path, *rules, sessions=[session(tool_responses=[{"tool": "search", **response}])])
    done = flakestorm(tmp_path, "replay", "run", report=True)
    assert said in done.report["runs"][0]["output"]
    assert [(cell["invariant"], cell["verdict"]) for cell in done.report["cells"]] == [("admits", "pass")]
    assert (done.code, live_calls(tmp_path)) == (0, 0)


def test_replies_that_run_out_are_no_pass_and_no_live_call(tmp_path) -> None:
    sessions = [session(input="twice", tool_responses=[{"tool": "search", "response": {"flights": 42}}])]
    python_project(tmp_path, {"id": "answers", "type": "output_not_empty"}, sessions=sessions)
    done = flakestorm(tmp_path, "replay", "run", report=True)
    (cell,) = done.report["cells"]
    assert (done.code, cell["verdict"], live_calls(tmp_path)) == (3, "inconclusive", 0)
    assert "search was called 2 times and the session holds 1" in cell["reason"]
    assert "this is call 2" in done.report["runs"][0]["output"]


def test_a_tool_that_is_never_called_proves_nothing(tmp_path) -> None:
    never = session(input="never", tool_responses=[{"tool": "search", "response": "x"}])
    strange = session(id="i-2", tool_responses=[{"tool": "search", "response": "x"}, {"tool": "serach"}])
    python_project(tmp_path, {"id": "answers", "type": "output_not_empty"}, sessions=[never, strange])
    done = flakestorm(tmp_path, "replay", "run", report=True)
    first, second = done.report["cells"]
    assert (done.code, first["verdict"], second["verdict"]) == (3, "inconclusive", "inconclusive")
    assert "search was never called, so the incident was not met" in first["reason"]
    assert "names serach" in second["reason"]
    assert done.report["scores"]["replay"]["value"] is None


def test_not_calling_it_is_a_pass_where_a_rule_says_so(tmp_path) -> None:
    never = session(input="never", tool_responses=[{"tool": "search", "response": "x"}])
    python_project(tmp_path, {"id": "keeps-off", "type": "tool_not_called", "tool": "search"}, sessions=[never])
    assert flakestorm(tmp_path, "replay", "run").code == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"contract": "travle"}, "there is no contract 'travle': did you mean 'travel'?"),
        ({"contract": None}, "say contract: travel"),
        ({"tool_responces": []}, "tool_responces"),
        ({"id": None}, "needs either 'file', or 'id' and 'input'"),
        ({"faults": ["llm/*"]}, "faults"),
    ],
)
def test_a_wrong_session_is_refused_by_file(tmp_path, change, said) -> None:
    python_project(tmp_path)
    keys = {key: value for key, value in session(**change).items() if value is not None}
    (tmp_path / "incident.yaml").write_text(yaml.safe_dump(keys))
    done = flakestorm(tmp_path, "replay", "run", "incident.yaml")
    assert done.code == 2, done.out
    assert said in done.err
    assert "incident.yaml" in done.err
    assert live_calls(tmp_path) == 0


def test_nothing_to_replay_is_an_error(tmp_path) -> None:
    python_project(tmp_path)
    assert "there is no session to replay" in flakestorm(tmp_path, "replay", "run").err
    done = flakestorm(tmp_path, "replay", "run", "gone.yaml")
    assert (done.code, "gone.yaml: there is no such session file" in done.err) == (2, True)


def test_files_folders_and_words_that_are_kept(tmp_path) -> None:
    python_project(tmp_path)
    folder = tmp_path / "incidents"
    folder.mkdir()
    replies = [{"tool": "search", "response": {"flights": 1, "api_key": "sk-none"}}]
    (folder / "a.yaml").write_text(yaml.safe_dump(session(input="${HOME} \U0001f600", tool_responses=replies)))
    other = session(id="i-2", input="\U0001f600\ttab", tool_responses=replies)
    (folder / "b.json").write_text(json.dumps(other, indent="\t"))
    done = flakestorm(tmp_path, "replay", "run", "incidents", report=True)
    assert done.code == 0, done.err
    assert [run["input"] for run in done.report["runs"]] == ["${HOME} \U0001f600", "\U0001f600\ttab"]
    assert done.report["runs"][1]["reproduce"] == "flakestorm replay run -c flakestorm.yaml incidents/b.json"


@pytest.mark.parametrize("client", ["httpx", "requests", "function"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_launched_agent_meets_the_incident(tmp_path, client, stream) -> None:
    with world() as up:
        write_config(
            tmp_path,
            agent=sdk_agent(up, client=client, stream=stream),
            boundary={"tools": {"search": "*/search"}},
            contract=contract({"id": "answers", "type": "contains", "value": "flights"}),
        )
        keys = session(tool_responses=[{"tool": "search", "response": {"flights": 77}, "latency_ms": 5}])
        (tmp_path / "incident.yaml").write_text(yaml.safe_dump(keys))
        done = flakestorm(tmp_path, "replay", "run", "incident.yaml", report=True)
        asked = Counter(request.path for request in up.requests)
        told = [request.json() for request in up.requests if request.path.endswith("completions")]
    assert done.code == 0, done.err + done.out
    assert asked["/search"] == 0
    assert asked["/v1/chat/completions"] == 2, "the model is live"
    assert "77" in json.dumps(told[-1]["messages"]), "the model was told the recorded reply"
    ran_inside = any("ran inside the agent" in note for note in done.report["notes"])
    assert ran_inside is (client == "function")


GULLIBLE = (
    SEARCH
    + """
def answer(text: str) -> str:
    try:
        return f"I found {search(to='Oslo')['flights']} flights."
    except Exception as error:
        return "I found 5 flights."
"""
)
CAREFUL = GULLIBLE.replace('return "I found 5 flights."', 'return f"Unavailable: {error}"')


def test_what_failed_is_exported_and_fails_until_the_agent_is_fixed(tmp_path) -> None:
    (tmp_path / "my_agent.py").write_text(GULLIBLE)
    honest = {"id": "honest", "type": "excludes_pattern", "patterns": ["I found"], "when": "tool_faults_active"}
    down = {"name": "down", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 500, "message": "full"}]}
    lost = {"name": "lost", "tool_faults": [{"tool": "search", "mode": "timeout", "delay_ms": 7}]}
    shape = {"name": "shape", "tool_faults": [{"tool": "search", "mode": "empty"}]}
    matrix = [{"name": "calm"}, down, lost, shape]
    contract = {"name": "travel", "invariants": [honest], "chaos_matrix": matrix, "trials": 2}
    write_config(tmp_path, agent=PYTHON, contract=contract)
    assert flakestorm(tmp_path, "contract", "run", report=True).code == 1
    (tmp_path / "asked.txt").unlink()

    done = flakestorm(tmp_path, "replay", "export", "--from-report", "out/report.json", "-o", "incidents")
    assert done.code == 0, done.err
    files = sorted((tmp_path / "incidents").glob("*.yaml"))
    said = [yaml.safe_load(file.read_text())["tool_responses"][0] for file in files[:2]]
    assert said[1].pop("latency_ms") >= 7
    said[0].pop("latency_ms", None)  # a millisecond, where the machine took one
    assert said == [
        {"tool": "search", "response": {"error": "full"}, "status": 500, "fault": "error"},
        {"tool": "search", "response": "no answer within 7 ms", "status": 0, "fault": "timeout"},
    ]
    assert len(files) == len(list((tmp_path / "incidents" / "tapes").iterdir())) == 3
    one = yaml.safe_load(files[0].read_text())
    assert (one["input"], one["contract"]) == ("a flight to Oslo", "travel")
    assert "honest: " in one["expected_failure"]

    assert flakestorm(tmp_path, "replay", "run", "incidents", report=True).code == 1
    tape = next((tmp_path / "incidents" / "tapes").iterdir())
    assert flakestorm(tmp_path, "replay", "run", str(tape)).code == 1, "a tape is a session too"
    (tmp_path / "my_agent.py").write_text(CAREFUL)
    fixed = flakestorm(tmp_path, "replay", "run", "incidents", report=True)
    assert fixed.code == 0, fixed.err + fixed.out
    assert fixed.report["scores"]["replay"]["passed"] == 3
    assert live_calls(tmp_path) == 0


def test_export_names_what_it_cannot_do(tmp_path) -> None:
    python_project(tmp_path)
    assert flakestorm(tmp_path, "contract", "run", report=True).code == 0
    done = flakestorm(tmp_path, "replay", "export", "--from-report", "out/report.json")
    assert (done.code, "no run of it failed" in done.err) == (2, True)
    done = flakestorm(tmp_path, "replay", "export", "--from-report", "out/report.json", "--run", "r-9")
    assert (done.code, "no run 'r-9'; its runs are r-0001" in done.err) == (2, True)
    done = flakestorm(tmp_path, "replay", "export", "--from-report", "out/report.json", "--run", "r-0001", "-o", "kept")
    assert done.code == 0, done.err
    assert flakestorm(tmp_path, "replay", "run", "kept").code == 0


def test_a_model_fault_of_the_incident_is_played_again(tmp_path) -> None:
    cut = {"mode": "truncated_response", "max_tokens": 2, "calls": [2]}
    with world() as up:
        write_config(
            tmp_path,
            agent=sdk_agent(up),
            boundary={"tools": {"search": "*/search"}},
            contract={
                "name": "travel",
                "invariants": [{"id": "whole", "type": "excludes_pattern", "patterns": ["CUT"]}],
                "chaos_matrix": [{"name": "cut", "llm_faults": [cut]}],
            },
        )
        assert flakestorm(tmp_path, "contract", "run", report=True).code == 1
        assert flakestorm(tmp_path, "replay", "export", "--from-report", "out/report.json").code == 0
        (file,) = (tmp_path / "sessions").glob("*.yaml")
        kept = yaml.safe_load(file.read_text())
        assert kept["faults"] == ["llm/gpt-4o#2=truncated_response:2"]
        assert kept["tool_responses"][0]["response"] == {"flights": 3}
        up.requests.clear()
        done = flakestorm(tmp_path, "replay", "run", "sessions", report=True)
        assert done.code == 1, done.err + done.out
        assert not [request for request in up.requests if request.path == "/search"]


def test_ci_has_its_replay_phase(tmp_path) -> None:
    replies = [{"tool": "search", "response": {"flights": 42}}]
    python_project(
        tmp_path,
        {"id": "finds", "type": "contains", "value": "42", "when": "always"},
        sessions=[session(tool_responses=replies), session(id="i-2", tool_responses=replies)],
    )
    config = yaml.safe_load((tmp_path / "flakestorm.yaml").read_text())
    del config["contract"]["chaos_matrix"]
    config["chaos_matrix"] = [{"name": "calm"}]
    config["contract"]["invariants"].append({"id": "answers", "type": "completes", "severity": "low"})
    (tmp_path / "flakestorm.yaml").write_text(yaml.safe_dump(config))
    done = flakestorm(tmp_path, "ci", report=True)
    assert done.report["scores"]["replay"]["value"] == 1.0
    assert {phase["name"]: phase["verdict"] for phase in done.report["phases"]}["replay"] == "pass"
    assert "overall" in done.report["scores"]
    config["replays"]["sessions"][1]["contract"] = "gone"
    (tmp_path / "flakestorm.yaml").write_text(yaml.safe_dump(config))
    done = flakestorm(tmp_path, "ci")
    assert (done.code, "no contract 'gone'" in done.err) == (2, True)


def test_mcp_tools_say_what_the_session_holds(tmp_path) -> None:
    agent = {"type": "command", "start": [sys.executable, str(PROGRAMS / "mcp_agent.py")]}
    rules = [{"id": "answers", "type": "output_not_empty"}]
    replies = [{"response": "yesterday's"}, {"response": "gone", "status": 503}, {"response": {"a": 1}}]
    sessions = [session(id=f"i-{n}", tool_responses=[{"tool": "echo", **reply}]) for n, reply in enumerate(replies)]
    write_config(
        tmp_path,
        agent={**agent, "mcp": {"notes": [sys.executable, "-I", str(PLAIN)]}},
        contract=contract(*rules),
        replays={"sessions": sessions},
    )
    done = flakestorm(tmp_path, "replay", "run", report=True)
    assert done.code == 0, done.err + done.out
    assert [run["output"] for run in done.report["runs"]] == [
        "the notes say: yesterday's",
        "the notes failed: gone",
        'the notes say: {"a":1}',
    ]


def test_what_the_page_shows_is_so(tmp_path) -> None:
    page = (PROGRAMS.parents[2] / "docs/how-to/replay-incidents.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my_agent.py").write_text(GULLIBLE)
    honest = {"id": "honest", "type": "excludes_pattern", "patterns": ["I found"], "when": "tool_faults_active"}
    write_config(tmp_path, agent=PYTHON, contract=contract(honest))
    (tmp_path / "incidents").mkdir()
    for name in ("incident.yaml", "incidents/one.yaml"):
        (tmp_path / name).write_text(shown)
    lines = [line[2:] for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    for words in (line.split()[1:] for line in lines[:2]):
        assert flakestorm(tmp_path, *words).code == 1
    (tmp_path / "my_agent.py").write_text(CAREFUL)
    for words in (line.split()[1:] for line in lines[:2]):
        done = flakestorm(tmp_path, *words)
        assert done.code == 0, done.err
    for words in (line.split()[1:] for line in lines[2:]):  # others are run elsewhere; that they are spelled so, here
        done = flakestorm(tmp_path, *words[:2], "--help")
        assert all(word in done.out for word in words if word.startswith("--")), words
