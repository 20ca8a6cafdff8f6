from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from faults_support import World, llm_fault, scene
from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import pump
from flakestorm.faults.replies import editing, unchangeable
from flakestorm.wire.base import Edit
from model_replies import PAY, call_of, reply_of


def test_the_wire_of_the_call_spells_the_edit() -> None:
    for wire in ("openai_chat", "anthropic"):
        fired: list[str] = []
        edit = Edit(text=lambda _: "no", on_change=lambda fired=fired: fired.append("said no"))  # type: ignore[misc]
        _, body = World(reply_of(wire)).read(editing(edit, scene([]), otherwise="-"), call_of(wire))
        assert (b'"no"' in body, fired) == (True, ["said no"])


SHORT: dict[str, Any] = {"max_tokens": 999}
CHAT, MORSE = call_of("openai_chat"), replace(call_of("openai_chat"), wire="morse")
COHERE = replace(CHAT, wire="completions")
FAILED = replace(reply_of("openai_chat"), status=500)
WHY: list[tuple[str, dict[str, Any], Reply, Call, str]] = [
    ("truncated_response", SHORT, reply_of("openai_chat"), CHAT, "the answer was no longer than 999 tokens"),
    ("truncated_response", {}, FAILED, CHAT, "the provider answered 500 by itself"),
    ("garbage", {}, reply_of("openai_chat", None, [PAY]), CHAT, "the answer had no words"),
    ("garbage", {}, reply_of("openai_chat"), MORSE, "no wire understands this protocol"),
    ("refusal", {}, reply_of("openai_chat"), COHERE, "such an answer cannot be changed, or not"),
    ("content_filter", {}, reply_of("ollama"), call_of("ollama"), "such an answer cannot be changed, or not to this"),
    ("content_filter", {"form": "prompt"}, reply_of("ollama"), call_of("ollama"), "a stopped prompt has no answer"),
    ("response_drift", {}, reply_of("openai_chat"), CHAT, "json_field_rename found nothing to change in the answer"),
    ("bad_tool_call", {}, reply_of("openai_chat"), CHAT, "the answer asks for no tool, or in no way that can be"),
    ("rate_limit", {}, reply_of("openai_chat"), MORSE, "no wire understands this protocol"),
    ("overloaded", {"after_events": 1}, reply_of("openai_chat"), CHAT, "the reply came whole, not as a stream"),
    ("overloaded", {"after_events": 1}, FAILED, CHAT, "the provider answered 500 by itself"),
    ("stream_cut", {}, reply_of("anthropic"), call_of("anthropic"), "the reply came whole, not as a stream"),
    ("stream_cut", {"after_events": 99}, reply_of("anthropic", stream=True), call_of("anthropic"), "the stream had no"),
    ("slow_stream", {}, reply_of("gemini"), call_of("gemini"), "the reply came whole, not as a stream"),
]


@pytest.mark.parametrize(("mode", "settings", "reply", "call", "why"), WHY)
def test_a_fault_that_does_nothing_says_why(
    mode: str, settings: dict[str, Any], reply: Reply, call: Call, why: str
) -> None:
    fired, idle = list[str](), list[str]()
    World(reply).read(llm_fault(fired, mode, idle=idle, **settings), call)
    assert fired == []
    assert idle[0].startswith(why)


@pytest.mark.parametrize("mode", ["empty", "refusal", "garbage"])
def test_one_that_does_something_says_nothing_else(mode: str) -> None:
    fired, idle = list[str](), list[str]()
    World(reply_of("gemini", stream=True)).read(llm_fault(fired, mode, idle=idle), call_of("gemini", stream=True))
    assert (len(fired), idle) == (1, [])


@pytest.mark.parametrize(
    ("mode", "settings", "why"),
    [
        (
            "truncated_response",
            {"max_tokens": 999},
            "the answer was no longer than 999 tokens, as far as the agent read it",
        ),
        ("stream_cut", {"after_events": 99}, "the agent left the stream before that"),
        ("server_error", {"after_events": 99}, "the agent left the stream before that"),
    ],
)
def test_of_a_stream_that_the_agent_leaves_is_said_what_it_saw(mode: str, settings: dict[str, Any], why: str) -> None:
    fired, idle = list[str](), list[str]()
    fault = llm_fault(fired, mode, idle=idle, **settings)
    out = pump(World(reply_of("gemini", stream=True)).cross(fault, call_of("gemini", stream=True)), lambda _: None)
    next(out)
    out.close()
    assert (fired, idle) == ([], [why])


def test_what_cannot_be_changed_says_so() -> None:
    assert "anthropic" in unchangeable(Reply(), call_of("anthropic"))
