"""What the guide to forks shows is executed."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

import flakestorm as public
from e2e_support import PROGRAMS, flakestorm, write_config
from upstream import Canned, Request, Upstream, document, openai_chat

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "fork.md").read_text()


def answer(request: Request) -> Canned:
    told = [turn["content"] for turn in request.json()["messages"] if turn["role"] == "tool"]
    if told:
        return openai_chat(f"answer on {told[-1]}")
    return openai_chat(tool_calls=[("call_0000000001", "search", {"to": "Oslo"})])


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as up:
        up.reply("/v1/chat/completions", answer)
        up.reply("/search", document({"flights": 3}))
        yield up


def test_the_commands_do_what_they_say(tmp_path: Path, up: Upstream) -> None:
    (tmp_path / "agent.py").write_text((PROGRAMS / "forked_agent.py").read_text())
    (tmp_path / "none.json").write_text('{"flights": 0}')
    write_config(
        tmp_path,
        agent={"type": "command", "start": [sys.executable, "agent.py"], "endpoint": "unused"},
        boundary={"tools": {"search": "*/search"}, "allow_live": True},
        invariants=[{"type": "regex", "pattern": "503"}],
    )
    env = {"SDK": "plain", "SEARCH_URL": f"{up.url}/search", "OPENAI_BASE_URL": f"{up.url}/v1"}
    for block in re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL):
        for line in block.splitlines():
            words = shlex.split(line.removeprefix("$ flakestorm "))
            done = flakestorm(tmp_path, *words, env=env)
            expected = 1 if words[0] == "diff" else 0
            assert done.code == expected, (line, done.out, done.err)


def test_the_python_does_what_it_says(
    tmp_path: Path, up: Upstream, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def book(text: str) -> str:
        return f"{text}: {httpx.post(f'{up.url}/search', json={'to': text}).json()['flights']}"

    with public.record("booking.tape", input="Oslo") as tape:
        tape.output = book("Oslo")
    (python,) = re.findall(r"```python\n(import flakestorm.*?)```", GUIDE, re.DOTALL)
    exec(python, {"book": book})
    assert capsys.readouterr().out == "Oslo: 0 pure\n"
    assert up.count() == 1


def test_the_state_around_an_agent_is_saved_and_put_back_as_the_page_says(tmp_path: Path, up: Upstream) -> None:
    (agent,) = re.findall(r"```yaml\nagent:\n(.*?)```", GUIDE, re.DOTALL)
    (hooks,) = re.findall(r"```python\n(# hooks.py.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "hooks.py").write_text(hooks)
    (tmp_path / "agent.py").write_text((PROGRAMS / "forked_agent.py").read_text())
    (tmp_path / "seats.db").write_text("before")
    write_config(
        tmp_path,
        agent={**yaml.safe_load(agent), "endpoint": "unused"},
        boundary={"tools": {"search": "*/search"}},
        invariants=[{"type": "completes"}],
    )
    env = {"SDK": "plain", "SEARCH_URL": f"{up.url}/search", "OPENAI_BASE_URL": f"{up.url}/v1"}
    done = flakestorm(tmp_path, "record", "-o", "a.tape", "--", sys.executable, "agent.py", env=env)
    assert (done.code, "warning" in done.err) == (0, False), done.err
    (tmp_path / "seats.db").write_text("after")
    words = ("fork", "a.tape", "--at", "tool/search#1", "--resample", "-o", "b.tape")
    done = flakestorm(tmp_path, *words, env=env)
    assert "environment: snapshot" in done.err
    assert (tmp_path / "seats.db").read_text() == "before"
