"""What the guide to forks shows is executed."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

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
    (python,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    exec(python, {"book": book})
    assert capsys.readouterr().out == "Oslo: 0 pure\n"
    assert up.count() == 1
