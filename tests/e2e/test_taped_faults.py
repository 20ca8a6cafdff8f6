"""Faults on a tape: up to the first nothing is called, and after it what the config allows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from e2e_support import PROGRAMS, Done, flakestorm, sdk_agent, world, write_config
from upstream import Canned, Request, Upstream, document, openai_chat


def answer(request: Request) -> Canned:
    turns = request.json()["messages"]
    told = [turn["content"] for turn in turns if turn["role"] == "tool"]
    if not told:
        return openai_chat(tool_calls=[("call_0000000001", "search", {"to": "Oslo"})])
    return openai_chat(f"answer on {told[-1]}")


class Taped:
    """A configured agent, and its tape."""

    def __init__(self, folder: Path, up: Upstream) -> None:
        self.folder, self.up = folder, up
        self.env = {"SDK": "plain", "SEARCH_URL": f"{up.url}/search", "OPENAI_BASE_URL": f"{up.url}/v1"}
        self.configure(allow_live=False)
        done = self.run("record", "--input", "a flight to Oslo", "-o", "a.tape")
        assert done.code == 0, done.err

    def configure(self, *, allow_live: bool) -> None:
        agent = {"type": "command", "start": [sys.executable, str(PROGRAMS / "forked_agent.py")], "endpoint": "unused"}
        write_config(
            self.folder,
            agent=agent,
            boundary={"tools": {"search": "*/search"}, "allow_live": allow_live},
            invariants=[{"id": "admits", "type": "regex", "pattern": "failed: 503"}],
        )

    def run(self, *words: str, report: bool = False) -> Done:
        return flakestorm(self.folder, *words, env=self.env, report=report)

    def inject(self, *words: str) -> tuple[Done, list[str]]:
        """`run --tape`, and the paths of what was called."""
        before = len(self.up.requests)
        done = self.run("run", "--tape", "a.tape", *words, report=True)
        return done, [request.path for request in self.up.requests[before:]]


@pytest.fixture
def taped(tmp_path: Path):
    with Upstream() as up:
        up.reply("/v1/chat/completions", answer)
        up.reply("/search", document({"flights": 3}))
        yield Taped(tmp_path, up)


def test_what_comes_after_the_fault_is_live_where_that_is_allowed(taped: Taped) -> None:
    taped.configure(allow_live=True)
    done, called = taped.inject("--inject", "tool/search#1=error:503")
    assert (done.code, called) == (0, ["/v1/chat/completions"]), done.err
    run = done.run("injected")
    assert run["output"].strip() == "answer on search failed: 503"
    assert [fired["site"] for fired in run["faults"]["fired"]] == ["tool/search#1"]
    assert "--tape a.tape" in run["reproduce"]


def test_without_leave_to_go_live_the_run_is_inconclusive_and_nothing_is_called(taped: Taped) -> None:
    done, called = taped.inject("--inject", "tool/search#1=error:503")
    assert (done.code, called) == (3, []), done.err
    assert "set boundary.allow_live: true" in done.cell("injected", "admits")["reason"]


def test_without_a_fault_the_tape_alone_is_judged(taped: Taped) -> None:
    done, called = taped.inject()
    assert (done.code, called) == (1, []), done.err
    done, called = taped.inject("--inject", "llm/gpt-4o#2=truncated_response:1")
    assert (called, done.report is not None) == ([], True)


def test_an_agent_that_is_another_one_before_any_fault_is_inconclusive(taped: Taped) -> None:
    taped.configure(allow_live=True)
    done, called = taped.inject("--input", "a flight to Rome", "--inject", "tool/search#1=error:503")
    assert (done.code, called) == (3, []), done.err
    assert "before any fault" in done.cell("injected", "admits")["reason"]


def test_the_configured_agent_is_forked_and_its_fork_verified(taped: Taped) -> None:
    before = len(taped.up.requests)
    words = ("fork", "a.tape", "-o", "b.tape", "--at", "tool/search#1", "--fault", "error:503")
    done = taped.run(*words)
    assert (done.code, len(taped.up.requests) - before) == (0, 1), done.err
    assert "environment: pure" in done.err
    done = taped.run("diff", "a.tape", "b.tape")
    assert (done.code, "first at tool/search#1" in done.out) == (1, True), done.out
    assert taped.run("tapes", "show", "b.tape").out.count("fault  error") == 1


def test_misuse_is_exit_code_2(taped: Taped) -> None:
    assert taped.run("run", "--tape", "none.tape").code == 2
    assert taped.run("run", "--tape", "a.tape", "--chaos-only").code == 2


PYTHON = """
import os, time, uuid
import httpx

async def answer(text):
    async with httpx.AsyncClient() as client:
        url, run = os.environ["SEARCH_URL"], {"run": str(uuid.uuid4()), "at": time.time()}
        first = await client.post(url, json={"to": text, **run})
        second = await client.post(url, json={"at": time.time(), "n": first.json()["flights"]})
    return f"{text} {first.json()['flights']} {second.json()['flights']}"
"""


def test_an_agent_in_this_process_is_forked_and_its_clock_goes_on(tmp_path: Path) -> None:
    with Upstream() as up:
        up.reply("/search", document({"flights": 3}), document({"flights": 4}), document({"flights": 5}))
        (tmp_path / "agent_of_forks.py").write_text(PYTHON)
        write_config(
            tmp_path,
            agent={"type": "python", "endpoint": "agent_of_forks:answer"},
            boundary={"tools": {"search": "*/search"}},
            invariants=[{"type": "completes"}],
        )
        env = {"SEARCH_URL": f"{up.url}/search"}
        assert flakestorm(tmp_path, "record", "--input", "Oslo", "-o", "a.tape", env=env).code == 0
        words = ("fork", "a.tape", "--at", "tool/search#2", "--resample", "-o", "b.tape")
        done = flakestorm(tmp_path, *words, env=env)
        assert (done.code, done.out.strip(), up.count()) == (0, "Oslo 3 5", 3), done.err
        done = flakestorm(tmp_path, "verify-tape", "b.tape", "--match", "strict", env=env)
        assert (done.code, up.count()) == (0, 3), done.out
        done = flakestorm(
            tmp_path, "fork", "a.tape", "--at", "tool/search#1", "--fault", "error", "-o", "c.tape", env=env
        )
        assert (done.code, "the program failed" in done.err) == (0, True), done.err
        done = flakestorm(tmp_path, "diff", "a.tape", "c.tape", "--format", "json", env=env)
        assert json.loads(done.out)["first"]["site"] == "tool/search#1"


@pytest.mark.parametrize(("sdk", "stream"), [("openai", True), ("anthropic", False)])
def test_a_launched_server_with_a_real_sdk_is_forked(tmp_path: Path, sdk: str, stream: bool) -> None:
    with world() as up:
        write_config(
            tmp_path,
            agent=sdk_agent(up, sdk=sdk, stream=stream),
            boundary={"tools": {"search": "*/search*"}},
            invariants=[{"type": "completes"}],
        )
        assert flakestorm(tmp_path, "record", "--input", "to Oslo", "-o", "a.tape").code == 0
        before = len(up.requests)
        words = ("fork", "a.tape", "--at", "tool/search#1", "--fault", "error:503", "-o", "b.tape")
        done = flakestorm(tmp_path, *words)
        assert (done.code, len(up.requests) - before) == (0, 0), done.err
        assert "search is unavailable" in done.out
        assert "environment: pure" in done.err
