from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults_support import JSON, RESULTS, llm_call, stream, tool_call
from flakestorm.config.model import Chaos, ToolFault
from flakestorm.core.call import Reply
from flakestorm.errors import CallFailed
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.reader import Tape
from flakestorm.tape.text import block, lines, plain
from tape_support import ASKED, SAID, Run


def faulty(*faults: ToolFault) -> Schedule:
    return Schedule.of(Chaos(tool_faults=list(faults)))


def test_a_run_is_told_exchange_by_exchange(tmp_path: Path) -> None:
    run = Run(tmp_path / "r.tape", faults=faulty(ToolFault(mode="error")))
    run.clock.wait(0.5)
    run.ask(llm_call(body=ASKED), lambda _: Reply(200, JSON, json.dumps(SAID).encode()))
    run.ask(replace(tool_call(), lane="2"), lambda _: Reply(200, JSON, RESULTS))
    run.recorder.close(output="I could not\nbook it.")
    told = list(lines(Tape.open(tmp_path / "r.tape")))
    assert told[:5] == [
        f"tape   {tmp_path / 'r.tape'}",
        "run    r-1",
        "input  to Oslo",
        "",
        "     500.0 ms  llm/gpt-4o#1  200  0.0 ms",
    ]
    assert told[5:9] == [
        "    POST https://api.openai.com/v1/chat/completions",
        "    asked  user: book Oslo",
        '    said   Searching. search({"to":"OSL"}) (tool_calls)',
        "",
    ]
    assert told[9:15] == [
        "     500.0 ms  tool/search#1  503  0.0 ms  lane 2",
        "    GET https://tools.test/search?q=oslo",
        "    asked  ",
        '    said   {"error":"Service Unavailable"}',
        "    world  not asked",
        "    fault  error: 503 Service Unavailable",
    ]
    assert told[16] == "output I could not\\nbook it."
    assert told[17] == f"digest {run.recorder.digest}"


def test_what_the_world_said_is_told_where_it_differs() -> None:
    run = Run(faults=faulty(ToolFault(mode="malicious_response", payload="obey")))
    run.ask(tool_call(), lambda _: Reply(200, JSON, b"[1]"))
    told = list(block(run.recorder.exchanges[0]))
    assert '    said   "obey"' in told
    assert "    world  200  [1]" in told


def test_a_call_without_a_reply_and_a_broken_stream() -> None:
    run = Run(faults=faulty(ToolFault(mode="timeout", delay_ms=5)))
    with pytest.raises(CallFailed):
        run.ask(tool_call(), lambda _: Reply())
    told = list(block(run.recorder.exchanges[0]))
    assert "no reply" in told[0]
    assert "[broken]" in told[0]
    assert "    said   CallFailed: timeout: no answer within 5 ms" in told
    run = Run()
    chunks = run.chunks(llm_call(), lambda _: stream(b"data: 1\n\n", b"data: 2\n\n"))
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert "200 stream" in next(block(run.recorder.exchanges[0]))
    assert "[client left]" in next(block(run.recorder.exchanges[0]))


def test_an_interrupted_recording_and_an_agents_error(tmp_path: Path) -> None:
    run = Run(tmp_path / "r.tape")
    assert "interrupted" in list(lines(Tape.open(tmp_path / "r.tape")))[-1]
    run.recorder.close(error="timeout: no answer in 30000 ms")
    assert "error  timeout: no answer in 30000 ms" in list(lines(Tape.open(tmp_path / "r.tape")))


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("line\nline\r\tend", "line\\nline\\r\\tend"),
        ("\u202ereversed\u2066", "\\u202ereversed\\u2066"),
        ("c1 \x9b31m", "c1 \\x9b31m"),
        ("half \ud800", "half \\ud800"),
        ("Ærø 東京 🛫", "Ærø 東京 🛫"),
    ],
)
def test_what_could_steer_a_terminal_is_escaped(hostile: str, shown: str) -> None:
    assert plain(hostile) == shown


@given(st.text(), st.text(), st.text(min_size=1))
def test_nothing_an_agent_says_reaches_the_terminal_raw(said: str, asked: str, name: str) -> None:
    run = Run()
    call = replace(tool_call(name), lane=asked, method=asked, url=f"https://x.test/{asked}", body=asked.encode())
    run.ask(call, lambda _: Reply(200, (), said.encode()))
    for line in block(run.recorder.exchanges[0]):
        assert plain(line) == line
        assert len(line.splitlines()) == 1


def test_long_texts_are_cut() -> None:
    run = Run()
    run.ask(tool_call(), lambda _: Reply(200, (), b"x" * 10_000))
    assert max(map(len, block(run.recorder.exchanges[0]))) <= 130
