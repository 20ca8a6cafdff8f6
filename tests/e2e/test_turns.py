"""Golden prompts of several turns, as users have them: asked in order, in one run, judged turn by turn."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from e2e_support import flakestorm, write_config
from upstream import Upstream, document

BOT = """
def agent(prompt, history=()):
    said = [m["content"] for m in history if m["role"] == "user"] + [prompt]
    named = [text.split("name is ")[1].split()[0] for text in said if "name is " in text]
    if prompt.startswith("boom"):
        raise RuntimeError("no such turn")
    if "who am I" in prompt:
        return f"You are {named[-1]}" if named else "I do not know"
    return f"Hello {named[-1]}" if named else "Hello"
"""

SERVER = """
import json, sys
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLACE, MADE_BY = sys.argv[2], sys.argv[3]
TALKS, COUNT = {}, [0]

class Bot(BaseHTTPRequestHandler):
    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = {
            "cookie": lambda: next((m.value for m in SimpleCookie(self.headers.get("Cookie", "")).values()), None),
            "header": lambda: self.headers.get("X-Session"),
            "body": lambda: data.get("meta", {}).get("session"),
        }[PLACE]()
        if found is None or (MADE_BY == "agent" and found not in TALKS):
            COUNT[0] += 1
            found = f"s{COUNT[0]}"
        said = TALKS.setdefault(found, [])
        said.append(data["input"])
        reply = {"output": " | ".join(said)}
        if MADE_BY == "agent" and PLACE == "body":
            reply["meta"] = {"session": found}
        self.send_response(200)
        if MADE_BY == "agent" and PLACE == "cookie":
            self.send_header("Set-Cookie", f"sid={found}; Path=/; HttpOnly")
        if MADE_BY == "agent" and PLACE == "header":
            self.send_header("X-Session", found)
        body = json.dumps(reply).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Bot).serve_forever()
"""

TALK = ["my name is Bob", "it rains", "who am I?"]
HEARS = {"id": "hears", "type": "contains", "value": "my name is Bob | it rains | who am I?"}


def bot(folder: Path) -> dict[str, Any]:
    (folder / "turns_bot.py").write_text(BOT)
    return {"type": "python", "endpoint": "turns_bot:agent"}


def cells(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {cell["invariant"]: (cell["verdict"], cell["reason"]) for cell in report["cells"]}


def test_a_conversation_is_one_run_that_is_judged_turn_by_turn(tmp_path: Path) -> None:
    rules = [
        {"id": "knows", "type": "contains", "value": "You are Bob"},
        {"id": "greets", "type": "regex", "pattern": "^Hello Bob", "turn": 1},
        {"id": "greets-late", "type": "regex", "pattern": "^Hello", "turn": "last"},
        {"id": "speaks", "type": "output_not_empty", "turn": "every"},
        {"id": "greets-always", "type": "contains", "value": "Hello", "turn": "every"},
    ]
    write_config(tmp_path, agent=bot(tmp_path), golden_prompts=["hello", TALK], invariants=rules)
    done = flakestorm(tmp_path, "run", "--prompt", "1", report=True)
    assert done.code == 1, done.out + done.err
    assert done.report is not None
    found = cells(done.report)
    assert found["knows"][0] == "pass"
    assert found["greets"][0] == "pass"
    assert found["greets"][1].startswith("turn 1 of 3: ")
    assert found["greets-late"][0] == "fail"
    assert found["greets-late"][1].startswith("turn 3 of 3: ")
    assert found["speaks"] == ("pass", "every turn: the output is not empty")
    assert found["greets-always"][0] == "fail"
    assert found["greets-always"][1].startswith("turn 3 of 3: ")
    (run,) = done.report["runs"]
    assert run["input"] == "[1] my name is Bob\n[2] it rains\n[3] who am I?"
    assert [turn["input"] for turn in run["turns"]] == TALK
    assert [turn["output"] for turn in run["turns"]] == ["Hello Bob", "Hello Bob", "You are Bob"]
    assert run["reproduce"] == "flakestorm run -c flakestorm.yaml --prompt 1"


def test_turns_are_on_the_tape_and_a_command_line_can_say_them(tmp_path: Path) -> None:
    write_config(
        tmp_path, agent=bot(tmp_path), golden_prompts=["hello"],
        invariants=[{"id": "knows", "type": "contains", "value": "You are Eve"}],
    )  # fmt: skip
    done = flakestorm(tmp_path, "run", "--input", "my name is Eve", "--input", "who am I?", report=True)
    assert done.code == 0, done.out + done.err
    assert done.report is not None
    (run,) = done.report["runs"]
    assert run["reproduce"] == "flakestorm run -c flakestorm.yaml --input 'my name is Eve' --input 'who am I?'"
    shown = flakestorm(tmp_path, "tapes", "show", f"out/{run['tape']}", "--format", "json")
    assert [turn["output"] for turn in json.loads(shown.out)["turns"]] == ["Hello Eve", "You are Eve"]
    assert "turn 2 who am I?" in flakestorm(tmp_path, "tapes", "show", f"out/{run['tape']}").out


def test_a_turn_that_fails_ends_the_conversation(tmp_path: Path) -> None:
    rules = [
        {"id": "greets", "type": "contains", "value": "Hello", "turn": 1},
        {"id": "second", "type": "contains", "value": "Hello", "turn": 2},
        {"id": "third", "type": "contains", "value": "You are", "turn": 3},
        {"id": "quiet", "type": "excludes_pattern", "patterns": ["secret"], "turn": "every"},
    ]
    write_config(tmp_path, agent=bot(tmp_path), golden_prompts=[["hi", "boom", "who am I?"]], invariants=rules)
    done = flakestorm(tmp_path, "run", "--prompt", "0", report=True)
    assert done.report is not None
    found = cells(done.report)
    assert [found[name][0] for name in ("greets", "second", "third", "quiet")] == [
        "pass",
        "fail",
        "fail",
        "inconclusive",
    ]
    assert "RuntimeError: no such turn" in found["third"][1]
    (run,) = done.report["runs"]
    assert run["error"].startswith("crash: turn 2 of 3: ")
    assert run["turns"][2]["error"].startswith("not asked")


@pytest.mark.parametrize("place", ["cookie", "header", "body"])
@pytest.mark.parametrize("made_by", ["agent", "flakestorm"])
def test_an_http_agent_knows_its_sessions_apart(tmp_path: Path, place: str, made_by: str) -> None:
    """Many conversations at once, at one server: each of them hears its own turns only."""
    (tmp_path / "server.py").write_text(SERVER)
    names = {"cookie": "sid", "header": "X-Session", "body": "meta.session"}
    agent = {
        "type": "http",
        "endpoint": "http://127.0.0.1:{port}/",
        "start": f"python server.py {{port}} {place} {made_by}",
        "session": {place: names[place], "made_by": made_by},
    }
    contract = {"name": "talks", "trials": 4, "invariants": [HEARS], "chaos_matrix": [{"name": "calm"}]}
    write_config(tmp_path, agent=agent, golden_prompts=[TALK, [*TALK]], contract=contract)
    done = flakestorm(tmp_path, "contract", "run", "--concurrency", "2", report=True)
    assert done.code == 0, done.out + done.err
    assert done.report is not None
    outputs = {run["output"] for run in done.report["runs"]}
    assert outputs == {" | ".join(TALK)}, outputs


def test_an_id_that_never_comes_cannot_be_judged(tmp_path: Path) -> None:
    with Upstream() as up:
        up.reply("/chat", document({"output": "fine"}))
        agent = {"type": "http", "endpoint": f"{up.url}/chat", "session": {"cookie": "sid"}}
        write_config(tmp_path, agent=agent, golden_prompts=[TALK], invariants=[{"type": "completes"}])
        done = flakestorm(tmp_path, "run", "--prompt", "0", report=True)
    assert done.code == 3
    assert done.report is not None
    assert "set no cookie 'sid'" in done.report["runs"][0]["error"]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ({"type": "command", "start": "cat"}, "asked once"),
        ({"type": "http", "endpoint": "http://127.0.0.1:9/"}, "agent.session"),
        ({"type": "http", "endpoint": "http://127.0.0.1:9/", "session": {"made_by": "agent"}}, "where the id is"),
        ({"type": "http", "endpoint": "http://127.0.0.1:9/", "request_template": "{prompt}", "session": {"body": "id"}},
         "agent.session.body"),
        ({"type": "python", "endpoint": "a:b", "session": {"cookie": "id"}}, "agent.session"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_conversation_is_refused(tmp_path: Path, agent: dict[str, Any], said: str) -> None:
    contract = {"name": "c", "invariants": [HEARS], "chaos_matrix": [{"name": "calm"}]}
    write_config(tmp_path, agent=agent, golden_prompts=[TALK], contract=contract)
    done = flakestorm(tmp_path, "contract", "validate")
    assert done.code == 2
    assert said in done.err


def test_a_turn_that_no_prompt_has_is_refused(tmp_path: Path) -> None:
    rules = [{"type": "completes", "turn": 4}]
    write_config(tmp_path, agent=bot(tmp_path), golden_prompts=["hello", TALK], invariants=rules)
    done = flakestorm(tmp_path, "run")
    assert done.code == 2
    assert "invariants[0].turn" in done.err
    assert "3 turns" in done.err


def test_conversations_are_mutated_and_a_failing_one_can_be_run_again(tmp_path: Path) -> None:
    rules = [
        {"id": "knows", "type": "contains", "value": "You are Bob", "turn": 3},
        {"id": "greets", "type": "contains", "value": "Hello Bob", "turn": 1},
    ]
    mutations = {"types": ["multi_turn_attack", "context_manipulation", "custom"], "count": 6,
                 "custom_templates": {"wrong": "{prompt} name is Mallory"}}  # fmt: skip
    write_config(tmp_path, agent=bot(tmp_path), golden_prompts=[TALK], invariants=rules, mutations=mutations)
    done = flakestorm(tmp_path, "run", "--seed", "3", report=True)
    assert done.report is not None
    runs = {run["mutation"]["operator"]: run for run in done.report["runs"] if "mutation" in run}
    expected = {"poisoned_history", "poisoned_demand", "contradiction", "context_overflow", "contradiction_taken_back"}
    assert expected <= runs.keys()
    for name in expected:
        turns = runs[name]["turns"]
        assert [turn["input"] for turn in turns if turn["number"]] == TALK, name
        assert any(not turn["number"] for turn in turns)
    assert sum(len(turn["input"]) for turn in runs["context_overflow"]["turns"]) > 8_000
    verdicts = {cell["run"]: cell["verdict"] for cell in done.report["cells"] if cell["invariant"] == "greets"}
    assert verdicts[runs["poisoned_history"]["id"]] == "pass"
    again = runs["poisoned_demand"]
    words = again["reproduce"].split()
    assert "--mutate" in words
    once = flakestorm(tmp_path, "run", "--seed", "3", "--prompt", "0", "--mutate", words[-1].strip("'"), report=True)
    assert once.report is not None
    assert once.report["runs"][0]["input"] == again["input"]


def test_a_failing_conversation_is_exported_and_replayed(tmp_path: Path) -> None:
    rules = [{"id": "knows", "type": "contains", "value": "You are Ann"}]
    write_config(tmp_path, agent=bot(tmp_path), golden_prompts=[TALK], invariants=rules)
    done = flakestorm(tmp_path, "run", "--prompt", "0", report=True)
    assert done.code == 1
    written = flakestorm(tmp_path, "replay", "export", "--from-report", "out/report.json", "-o", "sessions")
    assert written.code == 0, written.err
    replayed = flakestorm(tmp_path, "replay", "run", "sessions", report=True)
    assert replayed.code == 1, replayed.out + replayed.err
    assert replayed.report is not None
    assert [turn["output"] for turn in replayed.report["runs"][0]["turns"]] == ["Hello Bob", "Hello Bob", "You are Bob"]


SEARCHER = """
import httpx

def agent(prompt, history=()):
    reply = httpx.get(f"{URL}/search", params={{"q": prompt, "turn": len(history) // 2}})
    return f"found {{reply.text}}" if reply.status_code == 200 else "search is unavailable"
"""


def searching(folder: Path, url: str) -> dict[str, Any]:
    (folder / "turns_searcher.py").write_text(SEARCHER.replace("{{", "{").replace("}}", "}").replace("{URL}", url))
    return {"type": "python", "endpoint": "turns_searcher:agent"}


def test_a_fault_in_a_later_turn_is_judged_there(tmp_path: Path) -> None:
    with Upstream() as up:
        up.reply("/search", document({"hits": 3}))
        rules = [
            {"id": "finds", "type": "contains", "value": "found", "turn": 1, "when": "any_chaos_active"},
            {"id": "admits", "type": "contains", "value": "unavailable", "turn": 2, "when": "any_chaos_active"},
            {"id": "asks-once", "type": "max_calls", "kind": "tool", "limit": 1, "turn": "every"},
            {"id": "asks-twice", "type": "max_calls", "kind": "tool", "limit": 1},
        ]
        down = {"name": "down later", "tool_faults": [{"tool": "search", "mode": "error", "calls": [2]}]}
        write_config(
            tmp_path, agent=searching(tmp_path, up.url), golden_prompts=[["a", "b"]],
            contract={"name": "c", "invariants": rules, "chaos_matrix": [{"name": "calm"}, down]},
            boundary={"tools": {"search": "*/search*"}},
        )  # fmt: skip
        done = flakestorm(tmp_path, "contract", "run", report=True)
        assert done.report is not None, done.err
        found = {i: done.cell("down later", i)["verdict"] for i in ("finds", "admits", "asks-once", "asks-twice")}
        assert found == {"finds": "inconclusive", "admits": "pass", "asks-once": "pass", "asks-twice": "fail"}
        assert [turn["calls"] for turn in done.run("down later")["turns"]] == [1, 1]


def test_a_recorded_conversation_is_verified_turn_by_turn(tmp_path: Path) -> None:
    with Upstream() as up:
        up.reply("/search", document({"hits": 3}))
        write_config(tmp_path, agent=searching(tmp_path, up.url))
        recorded = flakestorm(tmp_path, "record", "-o", "talk.tape", "--input", "a", "--input", "b")
        assert recorded.code == 0, recorded.err
        asked = len(up.requests)
        assert asked == 2
        verified = flakestorm(tmp_path, "verify-tape", "talk.tape")
        assert verified.code == 0, verified.out + verified.err
        assert len(up.requests) == asked


def test_an_interrupted_run_of_conversations_goes_on(tmp_path: Path) -> None:
    """What was made is judged again from the report and its tape, turn by turn, and gives the same verdicts."""
    rules = [{"id": "greets", "type": "contains", "value": "Hello Bob", "turn": 1}, {"type": "max_calls", "limit": 0}]
    contract = {"name": "c", "invariants": rules, "chaos_matrix": [{"name": "calm"}]}
    write_config(tmp_path, agent=bot(tmp_path), golden_prompts=[TALK, [*TALK, "bye"]], contract=contract)
    done = flakestorm(tmp_path, "contract", "run", "--seed", "1", report=True)
    assert done.report is not None
    cut = {**done.report, "runs": done.report["runs"][:1], "cells": [], "interrupted": True}
    (tmp_path / "out" / "cut.json").write_text(json.dumps(cut))
    again = flakestorm(tmp_path, "contract", "run", "--resume", "out/cut.json", report=True)
    assert again.report is not None, again.err
    kept = ("invariant", "prompt", "verdict", "reason")
    assert [[c[k] for k in kept] for c in again.report["cells"]] == [[c[k] for k in kept] for c in done.report["cells"]]


CHAT = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAMES = {}

class Chat(BaseHTTPRequestHandler):
    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        who, text = data["session_id"], data["input"]
        if text.startswith("My name is "):
            NAMES[who] = text[11:].split(".")[0]
        body = json.dumps({"output": f"I am here, {NAMES.get(who, 'stranger')}."}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Chat).serve_forever()
"""


def test_what_the_page_shows_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "conversations.md").read_text()
    (config,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (console,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    (tmp_path / "chat.py").write_text(CHAT)
    (tmp_path / "flakestorm.yaml").write_text(config)
    for line in console.splitlines():
        words = shlex.split(line.removeprefix("$ "))[1:]
        done = flakestorm(tmp_path, *words, "--concurrency", "2", report=True)
        assert done.report is not None, done.err
        verdicts = {(cell["invariant"], cell["verdict"]) for cell in done.report["cells"] if cell["prompt"] == 1}
        assert ("answers", "fail") not in verdicts
        assert "--input" in words or ("remembers", "pass") in verdicts
