"""`fork` as a stranger uses it: nothing before the site is called, and exactly what comes after it is."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e_support import FLAKESTORM, PROGRAMS, Done, clean_env, flakestorm, services
from flakestorm.tape.reader import Tape
from fork_support import Numbers, changing
from upstream import Canned, Request, Upstream, document, openai_chat
from wire_responses import message, response, tool

AGENT = (sys.executable, str(PROGRAMS / "forked_agent.py"))
CHAT = "/v1/chat/completions"
MODELS = {
    "plain": ("gpt-4o", CHAT),
    "openai": ("gpt-4o", CHAT),
    "anthropic": ("claude", "/v1/messages"),
    "responses": ("gpt-4o", "/v1/responses"),
}


class Forks:
    """A folder, a world that never says the same twice, and what was called in it."""

    def __init__(self, folder: Path, up: Upstream, sdk: str = "plain", how: str = "sync") -> None:
        self.folder, self.up, self.sdk = folder, up, sdk
        self.model, self.path = MODELS[sdk]
        self.env = {"SDK": sdk, "HOW": how, **services(up)}
        (folder / "flakestorm.yaml").write_text(CONFIG)
        done = self.run("record", "-o", "a.tape", "--", *AGENT)
        assert done.code == 0, done.err
        self.said = done.out.strip()

    def run(self, *words: str, **env: str) -> Done:
        return flakestorm(self.folder, *words, env={**self.env, **env})

    def fork(self, *words: str, **env: str) -> tuple[Done, int, int]:
        """`fork`, and how often the model and the search were called by it."""
        before = self.up.count(self.path), self.up.count("/search")
        done = self.run("fork", "a.tape", "-o", "b.tape", *words, **env)
        return done, self.up.count(self.path) - before[0], self.up.count("/search") - before[1]

    def tape(self, name: str = "b.tape") -> Tape:
        tape = Tape.open(self.folder / name)
        tape.verify()
        return tape


CONFIG = """
version: "2.0"
agent: {type: command, start: [python, unused.py], endpoint: unused}
golden_prompts: [a flight to Oslo]
boundary: {tools: {search: "*/search"}}
invariants: [{type: completes}]
"""


@pytest.fixture
def up() -> Iterator[Upstream]:
    number = Numbers()

    def responses(request: Request) -> Canned:
        told = [item["output"] for item in request.json()["input"] if item.get("type") == "function_call_output"]
        answer = message(f"answer {number()} on {told[-1]}") if told else tool("search", '{"to": "Oslo"}')
        return document({**response(answer), "id": f"resp_{number():024}"})

    with changing(number, lambda model, told: f"answer {number()} by {model} on {told}") as up:
        up.reply("/v1/responses", responses)
        yield up


@pytest.mark.parametrize(("sdk", "how"), [("openai", "sync"), ("anthropic", "astream")])
def test_another_tool_result_is_told_to_the_model_and_nothing_before_is_called(
    tmp_path: Path, up: Upstream, sdk: str, how: str
) -> None:
    forks = Forks(tmp_path, up, sdk, how)
    (tmp_path / "none.json").write_text('{"flights": "none"}')
    done, models, searches = forks.fork("--at", "tool/search#1", "--set", "none.json")
    assert (done.code, models, searches) == (0, 1, 0), done.err
    assert 'on {"flights": "none"}' in done.out
    assert "environment: pure" in done.err
    child = forks.tape()
    parent = forks.tape("a.tape")
    assert [str(x.site) for x in child.exchanges()] == [str(x.site) for x in parent.exchanges()]
    assert child.header["parent"]["digest"] == parent.footer.digest  # type: ignore[union-attr]
    assert (child.header["parent"]["site"], child.footer.output) == ("tool/search#1", done.out)  # type: ignore[union-attr]
    assert [x.sent for x in child.exchanges()] == [0, 0, 1]
    if how == "sync":
        verified = forks.run("verify-tape", "b.tape")
        assert verified.code == 0, verified.out


@pytest.mark.parametrize(("sdk", "how"), [("openai", "stream"), ("plain", "sync")])
def test_another_answer_is_given_as_the_agent_asks_for_it(tmp_path: Path, up: Upstream, sdk: str, how: str) -> None:
    forks = Forks(tmp_path, up, sdk, how)
    whole = openai_chat("I give up.")
    (tmp_path / "whole.json").write_bytes(b"".join(piece for piece in whole.pieces if isinstance(piece, bytes)))
    done, models, searches = forks.fork("--at", f"llm/{forks.model}#2", "--set", "whole.json")
    assert (done.code, done.out.strip(), models, searches) == (0, "I give up.", 0, 0), done.err
    assert [x.reply.stream for x in forks.tape().exchanges()] == [
        x.reply.stream for x in forks.tape("a.tape").exchanges()
    ]


def test_resampling_asks_the_world_again_from_the_site_on(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up)
    done, models, searches = forks.fork("--at", "llm/gpt-4o#2", "--resample")
    assert (done.code, models, searches) == (0, 1, 0), done.err
    assert done.out.strip() != forks.said
    done, models, searches = forks.fork("--at", "llm/gpt-4o#1", "--resample")
    assert (done.code, models, searches) == (0, 2, 1), done.err
    assert "environment: unrestored" in done.err
    assert "called for real: tool/search#1" in done.err


def test_another_model_is_asked_at_the_site_alone(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up)
    done, models, _ = forks.fork("--at", "llm/gpt-4o#1", "--model", "gpt-4o-mini", "--tools", "tape")
    asked = [json.loads(request.body)["model"] for request in up.requests if request.path == forks.path][-models:]
    assert (done.code, asked) == (0, ["gpt-4o-mini", "gpt-4o"]), done.err


def test_tools_of_the_tape_answer_what_they_were_asked(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up)
    done, models, searches = forks.fork("--at", "llm/gpt-4o#1", "--resample", "--tools", "tape")
    assert (done.code, models, searches) == (0, 2, 0), done.err
    assert forks.said.partition(" on ")[2] == done.out.strip().partition(" on ")[2]
    assert "environment: pure" in done.err


@pytest.mark.parametrize(
    ("site", "fault", "models", "told"),
    [
        ("tool/search#1", "error:503", 1, "on search failed: 503"),
        ("tool/search#1", "empty", 1, "on "),
        ("llm/gpt-4o#2", "truncated_response:2", 0, "answer"),
    ],
)
def test_a_fault_acts_on_the_recorded_reply(
    tmp_path: Path, up: Upstream, site: str, fault: str, models: int, told: str
) -> None:
    forks = Forks(tmp_path, up)
    done, asked, searches = forks.fork("--at", site, "--fault", fault)
    assert (done.code, asked, searches) == (0, models, 0), done.err
    hit = next(x for x in forks.tape().exchanges() if str(x.site) == site)
    assert [(str(f.site), f.mode) for f in hit.faults] == [(site, fault.partition(":")[0])]
    assert told in done.out + done.err


@pytest.mark.parametrize("sdk", ["plain"])
def test_threads_are_forked_at_the_call_that_was_recorded_there(tmp_path: Path, up: Upstream, sdk: str) -> None:
    forks = Forks(tmp_path, up, sdk, "threads")
    (tmp_path / "none.json").write_text('{"flights": "none"}')
    last = [x for x in forks.tape("a.tape").exchanges() if x.kind == "tool"][-1]
    city = json.loads(last.body)["to"]
    for _ in range(3):
        done, _, _ = forks.fork("--at", str(last.site), "--set", "none.json")
        assert done.code == 0, done.err
        answers = dict(zip(["Oslo", "Bergen", "Rome"], done.out.strip().split(" | "), strict=True))
        assert 'on {"flights": "none"}' in answers[city]
        assert sum("none" in answer for answer in answers.values()) == 1


def test_a_conversation_that_the_provider_keeps_is_told_again_in_full(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up, "responses")
    (tmp_path / "none.json").write_text('{"flights": "none"}')
    done, models, _ = forks.fork("--at", "tool/search#1", "--set", "none.json")
    assert (done.code, models, 'on {"flights": "none"}' in done.out) == (0, 1, True), done.err
    asked = json.loads(up.requests[-1].body)
    assert "previous_response_id" not in asked
    assert [item.get("type", item.get("role")) for item in asked["input"]] == [
        "user",
        "function_call",
        "function_call_output",
    ]
    assert b"previous_response_id" in forks.tape().exchanges()[-1].body


def test_the_environment_is_restored_before_anything_is_called(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up)
    script = "import os; open('restored', 'a').write(os.environ['FLAKESTORM_SITE'] + '\\n')"
    words = ("--at", "llm/gpt-4o#1", "--resample", "--restore", f'{sys.executable} -c "{script}"')
    done, _, _ = forks.fork(*words)
    assert (done.code, (tmp_path / "restored").read_text()) == (0, "llm/gpt-4o#1\n"), done.err
    assert "environment: snapshot" in done.err
    done, models, searches = forks.fork("--at", "llm/gpt-4o#1", "--resample", "--restore", "false")
    assert (done.code, models, searches) == (3, 0, 0), done.err
    assert "exited with code 1" in done.err


def test_a_program_that_is_another_one_before_the_site_is_not_forked(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up)
    done, models, searches = forks.fork("--at", "tool/search#1", "--fault", "empty", QUESTION="a flight to Rome")
    assert (done.code, models, searches) == (1, 0, 0), done.err
    assert "llm/gpt-4o#1 diverged" in done.err


def test_what_a_fork_changed_is_told_first_and_then_what_followed(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up)
    (tmp_path / "none.json").write_text('{"flights": "<script>"}')
    assert forks.fork("--at", "tool/search#1", "--set", "none.json")[0].code == 0
    assert forks.run("diff", "a.tape", "a.tape").code == 0
    done = forks.run("diff", "a.tape", "b.tape", "--format", "json")
    said = json.loads(done.out)
    assert (done.code, said["format"], said["equal"]) == (1, "flakestorm-diff/1", False)
    assert (said["first"]["site"], said["first"]["what"]) == ("tool/search#1", ["reply"])
    assert [(step["site"], step["outcome"], step["what"]) for step in said["steps"]] == [
        ("llm/gpt-4o#1", "same", []),
        ("tool/search#1", "changed", ["reply"]),
        ("llm/gpt-4o#2", "changed", ["request", "reply"]),
        ("agent/output#1", "changed", ["output"]),
    ]
    done = forks.run("diff", "a.tape", "b.tape")
    assert (done.code, "tool/search#1  reply  <- first" in done.out) == (1, True), done.out
    assert forks.run("diff", "a.tape", "b.tape", "-o", "d.html").code == 1
    page = (tmp_path / "d.html").read_text()
    assert ("<script>" in page, "&lt;script&gt;" in page, page.count("<tr class")) == (False, True, 4)
    (tmp_path / "cut.tape").write_bytes((tmp_path / "a.tape").read_bytes()[:-200])
    assert forks.run("diff", "a.tape", "cut.tape").code == 2
    assert forks.run("diff", "a.tape", "none.tape").code == 2
    assert forks.run("diff", "a.tape", "b.tape", "--format", "sarif").code == 2


def test_as_json(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up)
    done, _, _ = forks.fork("--at", "llm/gpt-4o#2", "--resample", "--format", "json", "--", *AGENT)
    said: dict[str, Any] = json.loads(done.out)
    assert (said["format"], said["environment"], said["served"]) == ("flakestorm-fork/1", "pure", 2)
    assert said["live"] == ["llm/gpt-4o#2"]
    assert said["output"].startswith("answer")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--at", "tool/search#9", "--resample"], "tool/search#1"),
        (["--at", "nonsense", "--resample"], "is not a site"),
        (["--at", "tool/search#1"], "--resample"),
        (["--at", "tool/search#1", "--resample", "--fault", "empty"], "--resample"),
        (["--at", "tool/search#1", "--fault", "emty"], "empty"),
        (["--at", "tool/search#1", "--model", "x"], "no model call"),
        (["--at", "tool/search#1", "--set", "missing.json"], "missing.json"),
        (["--at", "tool/search#1", "--resample", "-o", "a.tape"], "another file"),
        (["--at", "tool/search#1", "--resample", "--restore", "no-such-program"], "no-such-program"),
        (["--resample"], "--at"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_misuse_is_exit_code_2(tmp_path: Path, up: Upstream, words: list[str], told: str) -> None:
    forks = Forks(tmp_path, up)
    done, models, searches = forks.fork(*words)
    assert (done.code, models, searches) == (3 if "--restore" in words else 2, 0, 0), done.err
    assert told in done.err


def test_an_interrupted_fork_is_a_readable_tape(tmp_path: Path, up: Upstream) -> None:
    forks = Forks(tmp_path, up)
    script = str(PROGRAMS / "forked_agent.py")
    waiting = f"import runpy, time; runpy.run_path({script!r}, run_name='__main__'); time.sleep(60)"
    words = [str(FLAKESTORM), "fork", "a.tape", "--at", "llm/gpt-4o#2", "--resample", "-o", "b.tape", "--"]
    process = subprocess.Popen(
        [*words, sys.executable, "-u", "-c", waiting],
        cwd=tmp_path,
        env=clean_env(forks.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"answer")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.stdout.close()
    assert [str(x.site) for x in forks.tape().exchanges()] == ["llm/gpt-4o#1", "tool/search#1", "llm/gpt-4o#2"]
