"""Model faults from outside: a launched agent with a real SDK, held at the gateway, broken by the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from e2e_support import LONG_ANSWER, Done, flakestorm, sdk_agent, world, write_config
from upstream import sse

CHAT = "/v1/chat/completions"


def run(folder: Path, up: Any, *injections: str, sdk: str = "openai", stream: bool) -> Done:
    """One run with exactly these faults."""
    invariants = [{"id": "answers", "type": "output_not_empty", "severity": "critical"}]
    write_config(folder, agent=sdk_agent(up, sdk=sdk, stream=stream), invariants=invariants)
    words = [word for injection in injections for word in ("--inject", injection)]
    return flakestorm(folder, "run", "--prompt", "0", *words, report=True)


def fired(done: Done) -> list[tuple[str, str]]:
    return [(each["site"], each["mode"]) for each in done.run("injected")["faults"]["fired"]]


def test_a_stream_breaks_off_where_the_line_says(tmp_path: Path) -> None:
    with world() as up:
        done = run(tmp_path, up, "llm/gpt-4o#2=stream_cut:3", stream=True)
    assert fired(done) == [("llm/gpt-4o#2", "stream_cut")]
    assert done.run("injected")["error"], "the SDK raised, and this agent has no branch for that"
    tape = flakestorm(
        tmp_path, "tapes", "show", str(tmp_path / "out" / done.run("injected")["tape"]), "--format", "json"
    )
    assert '"text": "I found"' in tape.out.replace('":"', '": "'), "the role and two words arrived"


def test_what_is_not_streamed_cannot_break_off_and_proves_nothing(tmp_path: Path) -> None:
    with world() as up:
        done = run(tmp_path, up, "llm/gpt-4o#2=stream_cut:3", stream=False)
    assert (fired(done), done.run("injected")["output"], done.code) == ([], LONG_ANSWER, 3)


@pytest.mark.parametrize("words", ["", ":2"])
def test_a_stream_of_no_more_events_than_are_to_arrive_cannot_break_off_and_proves_nothing(
    tmp_path: Path, words: str
) -> None:
    """By default three arrive; this answer has two, the text and the end, and comes whole."""
    delta = {"role": "assistant", "content": "a short answer"}
    event = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o",
             "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}  # fmt: skip
    with world() as up:
        up.reply(CHAT, sse([event, "[DONE]"]))
        done = run(tmp_path, up, f"llm/*=stream_cut{words}", stream=True)
        cut = run(tmp_path, up, "llm/*=stream_cut:1", stream=True)
    assert (fired(done), done.run("injected")["output"], done.code) == ([], "a short answer", 3)
    assert done.report is not None
    assert (done.report["verdict"], done.cell("injected", "answers")["verdict"]) == ("inconclusive", "inconclusive")
    assert f"the stream had no more than {words[1:] or 3} events" in done.out
    assert [mode for _, mode in fired(cut)] == ["stream_cut"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_overloaded_provider_is_tried_again_as_its_sdk_does(tmp_path: Path, stream: bool) -> None:
    with world() as up:
        done = run(tmp_path, up, "llm/claude-sonnet-4-5#1=overloaded:1", sdk="anthropic", stream=stream)
        assert up.count("/v1/messages") >= 2
    assert fired(done) == [("llm/claude-sonnet-4-5#1", "overloaded")]
    assert (done.run("injected")["output"], done.code) == (LONG_ANSWER, 0)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_refusal_in_one_s_own_words_is_what_the_agent_says(tmp_path: Path, stream: bool) -> None:
    with world() as up:
        done = run(tmp_path, up, "llm/claude-sonnet-4-5#1=refusal:Not today.", sdk="anthropic", stream=stream)
    assert (done.run("injected")["output"], fired(done)) == ("Not today.", [("llm/claude-sonnet-4-5#1", "refusal")])


def test_the_profile_of_streams_is_played(tmp_path: Path) -> None:
    assert "stream_chaos" in flakestorm(tmp_path, "profiles").out
    invariants = [{"id": "answers", "type": "output_not_empty", "severity": "low"}]
    found: set[str] = set()
    with world() as up:
        for seed in (4, 3, 2, 1):  # three in four make something fire
            agent = sdk_agent(up, stream=True)
            write_config(tmp_path, agent=agent, invariants=invariants, advanced={"seed": seed, "retries": 0})
            done = flakestorm(tmp_path, "chaos", "--profile", "stream_chaos", report=True)
            assert done.report is not None
            found = {each["mode"] for run in done.report["runs"] for each in run["faults"]["fired"]}
            if found:
                break
    assert found
    assert found <= {"slow_stream", "stream_cut", "overloaded"}
