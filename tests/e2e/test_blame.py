"""`flakestorm blame` as a stranger runs it: recorded runs that fail, real agents, a live world on loopback."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e_support import FLAKESTORM, Done, clean_env, flakestorm, wait_until, write_config
from upstream import Canned, Request, Upstream, document, openai_chat

CHAT = """
import os, sys
import httpx

STEPS = int(os.environ["STEPS"])


def answer(text):
    said = []
    with httpx.Client(timeout=60) as client:
        for step in range(STEPS):
            seen = client.post(os.environ["WORLD"] + "/search", json={"step": step}).json()
            asked = [{"role": "user", "content": f"{text} step {step}: {seen} {said}"}]
            reply = client.post(
                os.environ["WORLD"] + "/v1/chat/completions", json={"model": "gpt-4o", "messages": asked}
            )
            said.append(reply.json()["choices"][0]["message"]["content"])
    return " ".join(said)


if __name__ == "__main__":
    print(answer(sys.stdin.read().strip()))
"""
RULES = [{"id": "right", "type": "excludes_pattern", "patterns": ["WRONG"], "severity": "critical"}]


class Live(Upstream):
    """A model that errs at the steps it is told to, and a tool."""

    def __init__(self) -> None:
        super().__init__()
        self.errs: set[int] = set()
        self.reply("/v1/chat/completions", self._model)
        self.reply("/search", document({"price": 120}))

    def _model(self, request: Request) -> Canned:
        said = str(request.json()["messages"][-1]["content"])
        step = int(said.partition("step ")[2].partition(":")[0])
        return openai_chat("WRONG" if step in self.errs or "99" in said else "fine")


@pytest.fixture
def live() -> Iterator[Live]:
    with Live() as up:
        yield up


def project(folder: Path, up: Upstream, steps: int) -> dict[str, str]:
    """A chat with that many steps, in this process; gives its environment."""
    (folder / "chat.py").write_text(CHAT)
    env = {"WORLD": up.url, "STEPS": str(steps)}
    agent = {"type": "python", "endpoint": "chat:answer", "env": env}
    write_config(folder, agent=agent, invariants=RULES, boundary={"tools": {"search": "*/search"}})
    return env


def recorded(folder: Path, up: Live, step: int) -> None:
    """A run in which the model errs at this step, from 0, and never again."""
    up.errs = {step}
    assert flakestorm(folder, "record", "-o", "failed.tape", "--input", "oslo").code == 0
    up.errs = set()


def blamed(folder: Path, *words: str) -> Done:
    return flakestorm(folder, "blame", *words, report=True)


@pytest.mark.parametrize(("steps", "at"), [(6, 0), (12, 7), (20, 16)])
def test_the_planted_error_of_a_chat_is_named(tmp_path: Path, live: Live, steps: int, at: int) -> None:
    project(tmp_path, live, steps)
    recorded(tmp_path, live, at)
    before = live.count()
    done = blamed(tmp_path, "failed.tape")
    assert done.code == 0, done.err
    assert done.report is not None
    found = done.report["blame"]
    assert (found["conclusion"], found["site"], found["kind"]) == ("step", f"llm/gpt-4o#{at + 1}", "model")
    assert found["jump"]["low"] > 0.05
    assert found["jump"]["low"] < found["jump"]["value"] == 1.0
    assert found["continuations"] == len(done.report["runs"]) < 50
    first, last = found["curve"][0], found["curve"][-1]
    assert (first[0], first[1], last[0], last[1]) == (0, 0.0, 2 * steps, 1.0)
    made = found["continuations"] * 2 * steps
    assert live.count() - before < made  # what is as recorded, the world is not asked again
    assert f"STEP  llm/gpt-4o#{at + 1}" in done.out


def test_a_recorded_program_is_run_again(tmp_path: Path, live: Live) -> None:
    env = project(tmp_path, live, 3)
    live.errs = {1}
    words = [str(FLAKESTORM), "record", "-o", "failed.tape", "--", sys.executable, "chat.py"]
    subprocess.run(words, cwd=tmp_path, env=clean_env(env), input="oslo", text=True, check=True, capture_output=True)
    live.errs = set()
    done = blamed(tmp_path, "failed.tape", "--invariant", "right")
    assert done.code == 0, done.out + done.err
    assert done.report is not None
    assert done.report["blame"]["site"] == "llm/gpt-4o#2"
    assert done.report["agent"].startswith("command")


@pytest.mark.parametrize("name", ["out/report.json#r-0001", "r-0001"])
def test_an_injected_fault_is_told_from_a_decision(tmp_path: Path, live: Live, name: str) -> None:
    project(tmp_path, live, 3)
    lie = "tool/search#2=malicious_response:99"
    assert flakestorm(tmp_path, "run", "--prompt", "0", "--inject", lie, report=True).code == 1
    done = flakestorm(tmp_path, "blame", name, "-o", "blame.json")
    assert done.code == 0, done.out + done.err
    document_ = json.loads((tmp_path / "blame.json").read_text())
    found = document_["blame"]
    assert (found["site"], found["kind"]) == ("tool/search#2", "fault")
    (step,) = found["steps"]
    assert step["event"]["fault"] == "malicious_response"
    assert [repair["how"] for repair in step["repairs"]] == ["resample", "healthy reply"]
    assert all(repair["value"] == 1.0 and repair["low"] < 1.0 for repair in step["repairs"])
    assert "flakestorm fork" in document_["runs"][0]["reproduce"]


def test_another_model_and_another_prompt_are_tried_at_the_blamed_call_alone(tmp_path: Path, live: Live) -> None:
    project(tmp_path, live, 3)
    recorded(tmp_path, live, 1)
    before = len(live.requests)
    done = blamed(tmp_path, "failed.tape", "--try-model", "gpt-9", "--try-prompt", "Think twice.")
    assert done.report is not None, done.err
    (step,) = done.report["blame"]["steps"]
    assert [repair["how"] for repair in step["repairs"]] == ["resample", "model gpt-9", "edited prompt"]
    assert all(repair["low"] < repair["value"] == 1.0 for repair in step["repairs"])
    asked = [request.json() for request in live.requests[before:] if request.path == "/v1/chat/completions"]
    others = [body for body in asked if body["model"] == "gpt-9"]
    edited = [body for body in asked if body["messages"][0]["role"] == "system"]
    assert [len(others), len(edited)] == [repair["judged"] for repair in step["repairs"][1:]]
    assert all("step 1:" in body["messages"][-1]["content"] for body in (*others, *edited))
    assert all(body["messages"][0]["content"] == "Think twice." for body in edited)


def test_the_input_may_have_done_it(tmp_path: Path, live: Live) -> None:
    project(tmp_path, live, 2)
    assert flakestorm(tmp_path, "record", "-o", "failed.tape", "--input", "99 flights").code == 0
    done = blamed(tmp_path, "failed.tape")
    assert done.code == 1
    assert done.report is not None
    assert (done.report["blame"]["conclusion"], done.report["blame"]["site"]) == ("systemic", None)
    done = blamed(tmp_path, "failed.tape", "--healthy-input", "nine flights")
    assert done.code == 0, done.out
    assert done.report is not None
    assert (done.report["blame"]["site"], done.report["blame"]["kind"]) == ("agent/input#1", "input")


def test_without_a_live_model_nothing_is_guessed(tmp_path: Path) -> None:
    with Live() as up:
        project(tmp_path, up, 3)
        recorded(tmp_path, up, 1)
    done = blamed(tmp_path, "failed.tape")
    assert done.code == 3
    assert done.report is not None
    found = done.report["blame"]
    assert (found["conclusion"], found["site"], found["jump"]) == ("cannot_tell", None, None)
    assert found["continuations"] == 4
    assert "could not be reached live" in done.out
    with Live() as up:
        up.reply("/v1/chat/completions", document({"error": {"message": "no such key"}}, status=401))
        project(tmp_path, up, 3)
        done = blamed(tmp_path, "failed.tape")
    assert done.code == 3


def test_a_replay_that_does_not_fail_again_is_said(tmp_path: Path, live: Live) -> None:
    project(tmp_path, live, 2)
    recorded(tmp_path, live, 1)
    (tmp_path / "chat.py").write_text(CHAT.replace('" ".join(said)', '" ".join(said).replace("WRONG", "fine")'))
    done = blamed(tmp_path, "failed.tape")
    assert done.code == 3
    assert "0 of 2 replays" in done.out
    (tmp_path / "chat.py").write_text("def answer(text):\n    return 'WRONG'\n")
    done = blamed(tmp_path, "failed.tape")
    assert done.code == 3
    assert done.report is not None
    assert "was not asked for again" in done.report["blame"]["why"]


def test_misuse_says_what_to_do(tmp_path: Path, live: Live) -> None:
    project(tmp_path, live, 2)
    assert flakestorm(tmp_path, "record", "-o", "fine.tape", "--input", "oslo").code == 0
    for words, said in (
        (["fine.tape"], "does not fail"),
        (["fine.tape", "--invariant", "rihgt"], "there is no invariant 'rihgt'"),
        (["nothing.tape"], "no such file"),
        (["flakestorm.yaml"], "no"),
        ([], "Missing argument"),
    ):
        done = flakestorm(tmp_path, "blame", *words)
        assert done.code == 2, words
        assert said in done.err


def test_the_guide_shows_what_there_is(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "blame.md").read_text()
    shown = [line[2:].split() for line in page.splitlines() if line.startswith("$ flakestorm blame ")]
    assert len(shown) == 3
    for words in shown:
        done = flakestorm(tmp_path, *words[1:])
        assert done.code == 2
        assert "no such" in done.err or "saved" in done.err or "no store" in done.err
    helped = flakestorm(tmp_path, "blame", "--help").out
    assert all(option in helped for option in ("--budget", "--invariant", "--healthy-input", "--try-model", "--resume"))


def test_the_page_draws_the_curve_and_the_store_keeps_it(tmp_path: Path, live: Live) -> None:
    project(tmp_path, live, 3)
    recorded(tmp_path, live, 1)
    done = flakestorm(tmp_path, "blame", "failed.tape", "-o", "blame.html")
    assert done.code == 0, done.err
    page = (tmp_path / "blame.html").read_text()
    assert '<svg class="curve"' in page
    assert "llm/gpt-4o#2" in page
    again = flakestorm(tmp_path, "report", "latest")
    assert "STEP  llm/gpt-4o#2" in again.out


def test_ctrl_c_keeps_what_was_made_and_resume_goes_on(tmp_path: Path, live: Live) -> None:
    project(tmp_path, live, 4)
    recorded(tmp_path, live, 2)
    asked, gate = threading.Event(), threading.Event()
    model = live._model

    def slow(request: Request) -> Canned:
        if live.count("/v1/chat/completions") > 40:
            asked.set()
            gate.wait(60)
        return model(request)

    live.reply("/v1/chat/completions", slow)
    words = [str(FLAKESTORM), "blame", "failed.tape", "-o", "part.json"]
    with subprocess.Popen(words, cwd=tmp_path, env=clean_env(), stderr=subprocess.PIPE, text=True) as running:
        wait_until(asked.is_set)
        running.send_signal(signal.SIGINT)
        gate.set()
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "To resume: flakestorm blame failed.tape -o part.json --resume" in said
    part = json.loads((tmp_path / "part.json").read_text())
    assert part["interrupted"]
    assert part["blame"]["conclusion"] == "cannot_tell"
    live.reply("/v1/chat/completions", model)
    done = flakestorm(tmp_path, "blame", "failed.tape", "-o", "whole.json", "--resume", "part.json")
    assert done.code == 0, done.out + done.err
    whole = json.loads((tmp_path / "whole.json").read_text())
    assert whole["blame"]["site"] == "llm/gpt-4o#3"
    assert {run["id"] for run in part["runs"]} <= {run["id"] for run in whole["runs"]}
