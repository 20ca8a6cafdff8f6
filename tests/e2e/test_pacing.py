"""A world that limits the rate of calls: what waits for it, what is said of it, and what stays the same."""

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e_support import LONG_ANSWER, PROGRAMS, Done, flakestorm, sdk_agent, world, write_config
from pages_support import DOCS, Reader
from schema_support import held_to
from upstream import Canned, Request, Upstream, anthropic_messages, document, openai_chat

CHAT = "/v1/chat/completions"
BUSY = {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}
ANSWERS = {"id": "answers", "type": "contains", "value": "flights"}


class Limiter:
    """Refuses some of the requests to the model; knows when each came, and when each refusal went."""

    def __init__(self, up: Upstream, refuses: Callable[[int, Request], int | None]) -> None:
        """`refuses` is given the request and its number, from 1, and gives the milliseconds to wait; None grants it."""
        [inner] = up._scripts[CHAT]
        self.came, self.went = list[float](), dict[int, float]()
        self._inner, self._refuses, self._lock = inner, refuses, threading.Lock()
        up.reply(CHAT, self.answer)

    def answer(self, request: Request) -> Canned:
        with self._lock:
            self.came.append(time.monotonic())
            number = len(self.came)
            wait_ms = self._refuses(number, request)
            if wait_ms is not None:
                self.went[number] = time.monotonic()
                return document(BUSY, status=429, headers={"retry-after-ms": str(wait_ms)})
        return self._inner(request)


def contract(folder: Path, up: Upstream, *words: str, scenario: dict[str, Any] | None = None, **advanced: Any) -> Done:
    write_config(
        folder,
        agent=sdk_agent(up),
        contract={"name": "c", "invariants": [ANSWERS], "chaos_matrix": [scenario or {"name": "calm"}]},
        advanced={"seed": 3, **advanced},
    )
    done = flakestorm(folder, "contract", "run", "--all-trials", *words, report=True)
    assert done.report is not None, done.err
    held_to("report", done.report)
    return done


def test_no_run_is_started_before_the_time_a_real_refusal_names(tmp_path: Path) -> None:
    with world() as up:
        limiter = Limiter(up, lambda n, _: {3: 20, 4: 20, 5: 1500}.get(n))  # the second run, and both of its retries
        done = contract(tmp_path, up, "--trials", "3", "--concurrency", "1")
    runs, cells = done.report["runs"], done.report["cells"]
    assert [run["output"] for run in runs] == [LONG_ANSWER, "the model is busy", LONG_ANSWER]
    assert limiter.came[5] - limiter.went[5] >= 1.5
    assert [cell["verdict"] for cell in cells] == ["pass", "inconclusive", "pass"]
    assert cells[1]["reason"].startswith(
        "the world, and no fault, refused llm/gpt-4o#1 and 2 more calls for the rate (429), and the agent never got "
        "through (otherwise: fail, "
    )
    assert done.code == 0
    assert runs[1]["refusals"][2] == {"site": "llm/gpt-4o#3", "status": 429, "wait_ms": 1500.0}
    assert "refusals" not in runs[0]
    pacing = done.report["pacing"]
    assert (pacing["refusals"], pacing["runs"], pacing["holds"], pacing["least"]) == (3, 1, 1, None)
    assert pacing["held_ms"] > 0
    assert any(note.startswith("the world refused 3 calls in 1 run for the rate") for note in done.report["notes"])
    assert "no run is started for " in done.err


def test_what_runs_do_does_not_depend_on_the_pace(tmp_path: Path) -> None:
    half = {"name": "half", "tool_faults": [{"tool": "search", "mode": "error", "probability": 0.5}]}
    firsts = []

    def fifth(_: int, request: Request) -> int | None:
        if request.headers["x-stainless-retry-count"] != "0":
            return None
        firsts.append(request)
        return 40 if len(firsts) % 5 == 0 else None

    found = []
    for name, refuses, advanced in (
        ("free", lambda _n, _r: None, {}),
        ("held", fifth, {"rate_limit": {"calls_per_minute": 6000}}),
    ):
        (folder := tmp_path / name).mkdir()
        with world() as up:
            limiter = Limiter(up, refuses)
            done = contract(folder, up, "--trials", "8", "--concurrency", "2", scenario=half, **advanced)
        runs = done.report["runs"]
        assert sum(len(run.get("refusals", ())) for run in runs) == len(limiter.went)
        assert done.report.get("pacing", {}).get("refusals", 0) == len(limiter.went)
        found.append([(run["output"], run["faults"]["fired"]) for run in runs if run["scenario"] == "half"])
        found[-1] += [(cell["verdict"], cell["reason"]) for cell in done.report["cells"]]
    assert limiter.went
    assert found[0] == found[1]
    assert {len(fired) for _, fired in found[0][:8]} == {0, 1}


def test_a_refusal_that_a_fault_makes_holds_nothing_back(tmp_path: Path) -> None:
    modes = (
        {"mode": mode, "retry_after_ms": 30, "calls": [n]} for n, mode in enumerate(("rate_limit", "overloaded"), 1)
    )
    with world() as up:
        limited = {"name": "limited", "llm_faults": [*modes]}
        done = contract(tmp_path, up, "--trials", "4", "--concurrency", "2", scenario=limited)
    assert [cell["verdict"] for cell in done.report["cells"]] == ["pass"] * 4
    assert {len(run["faults"]["fired"]) for run in done.report["runs"]} == {2}
    assert "pacing" not in done.report
    assert not any("refusals" in run for run in done.report["runs"])


def test_all_instances_of_an_agent_use_up_one_rate(tmp_path: Path) -> None:
    write_config(
        tmp_path,
        agent={
            "endpoint": "http://127.0.0.1:{port}",
            "start": [sys.executable, str(PROGRAMS / "crowded_agent.py"), "{port}"],
            "request_template": '{"input": "{prompt}"}',
        },
        contract={"name": "c", "invariants": [{"type": "completes"}], "chaos_matrix": [{"name": "calm"}]},
        advanced={"concurrency": 4, "rate_limit": {"calls_per_minute": 600}},
    )
    done = flakestorm(tmp_path, "contract", "run", "--trials", "4", report=True)
    assert done.code == 0, done.out + done.err
    # All four could begin at once, and had each instance a rate of its own, none would have waited.
    assert done.report["pacing"]["spaced_ms"] > 0
    assert "in all for advanced.rate_limit" in done.out
    loaded = flakestorm(tmp_path, "load", "--users", "4", "--runs", "4", report=True)
    assert any(note.startswith("advanced.rate_limit is not kept under load") for note in loaded.report["notes"])


BOOKING = """
import os
import httpx
URL = os.environ["WORLD"]

def answer(text):
    asked = {"model": "m", "messages": [{"role": "user", "content": text}]}
    for _ in range(2):
        if httpx.post(f"{URL}/v1/chat/completions", json=asked).is_success:
            break
    return "booked" if httpx.get(f"{URL}/search").is_success else "no idea"
"""


def test_searches_say_so_where_every_command_does(tmp_path: Path) -> None:
    (tmp_path / "booking.py").write_text(BOOKING)
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "booking:answer"},
        boundary={"tools": {"search": "*/search"}},
        invariants=[{"type": "contains", "value": "booked"}],
        advanced={"seed": 3, "concurrency": 1},
    )
    busy = document(BUSY, status=429, headers={"retry-after-ms": "20"})
    with Upstream() as up:
        env = {"WORLD": up.url}
        up.reply("/search", document({"flights": 3}))
        up.reply(CHAT, busy, openai_chat("Fine."))
        found = flakestorm(tmp_path, "explore", "--modes", "error", "--budget", "12", env=env, report=True)
        assert (found.code, len(found.report["findings"])) == (1, 1), found.out + found.err
        up.reply(CHAT, busy, openai_chat("Fine."))
        case = f"out/report.json#{found.report['findings'][0]['run']}"
        small = flakestorm(tmp_path, "shrink", case, env=env)
        assert small.code == 1, small.err
        [file] = (tmp_path / "reports").glob("*shrink*/report.json")
    shrunk = json.loads(file.read_text())
    for report in (found.report, shrunk):
        held_to("report", report)
        assert (report["pacing"]["refusals"], report["pacing"]["runs"]) == (1, 1)
        assert any(note.startswith("the world refused 1 call in 1 run for the rate") for note in report["notes"])
    for done in (found, small):
        assert "note: the world refused 1 call in 1 run for the rate" in done.out
    assert small.out.splitlines()[-1].startswith("flakestorm run ")


ASKING = """
import os
URL = os.environ["WORLD"]

def openai(text):
    from openai import OpenAI
    client = OpenAI(base_url=f"{URL}/v1", api_key="k", max_retries=0)
    asked = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    return asked.choices[0].message.content

def anthropic(text):
    from anthropic import Anthropic
    client = Anthropic(base_url=URL, api_key="k", max_retries=0)
    asked = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": text}])
    return asked.content[0].text

def google(text):
    from google import genai
    client = genai.Client(api_key="k", http_options={"base_url": URL})
    return client.models.generate_content(model="m", contents=text).text
"""
EXHAUSTED = {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED"}
EXHAUSTED |= {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.1s"}]}
PARTS = {"content": {"role": "model", "parts": [{"text": "Oslo."}]}, "finishReason": "STOP"}
SAID_BY = {
    "openai": (
        CHAT,
        document(BUSY, status=429, headers={"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "30ms"}),
        openai_chat("Oslo."),
        30,
    ),
    "anthropic": (
        "/v1/messages",
        document(
            {"type": "error", "error": {"type": "rate_limit_error", "message": "This request would exceed it."}},
            status=429,
            headers={"retry-after": "0.02"},
        ),
        anthropic_messages("Oslo."),
        20,
    ),
    "google": (
        "/v1/models/m:generateContent",
        document({"error": EXHAUSTED}, status=429),
        document({"candidates": [PARTS]}),
        1100,
    ),
}


@pytest.mark.parametrize("sdk", SAID_BY)
def test_the_time_that_each_provider_names_is_read_from_what_its_own_sdk_is_refused_by(
    tmp_path: Path, sdk: str
) -> None:
    path, busy, granted, wait_ms = SAID_BY[sdk]
    (tmp_path / "asking.py").write_text(ASKING)
    right = {"type": "contains", "value": "Oslo"}
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": f"asking:{sdk}"},
        contract={"name": "c", "invariants": [right], "chaos_matrix": [{"name": "calm"}]},
    )
    with Upstream() as up:
        up.reply(path, busy, granted)
        words = ("contract", "run", "--trials", "2", "--concurrency", "1")
        done = flakestorm(tmp_path, *words, env={"WORLD": up.url}, report=True)
        assert up.count() == 2, done.out + done.err
    assert [cell["verdict"] for cell in done.report["cells"]] == ["inconclusive", "pass"], done.out
    assert done.report["runs"][0]["refusals"] == [{"site": "llm/m#1", "status": 429, "wait_ms": wait_ms}]
    assert done.report["pacing"]["refusals"] == 1


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    Reader(tmp_path).follow(DOCS / "how-to" / "rate-limits.md")
