"""Tools that are plain functions inside an agent, broken by their results: real SDKs, in process.

What counts is what the model is asked in the end, so every claim is read off the requests that reached the upstream.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import openai
import pytest

from flakestorm.boundary import inprocess
from flakestorm.config.model import LlmFault, ToolFault
from results_support import Run, run_of
from upstream import (
    HELLO,
    Canned,
    Request,
    Upstream,
    anthropic_for,
    document,
    openai_for,
    text,
)

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
TOOLS: dict[str, Callable[..., str]] = {
    "search": lambda **arguments: json.dumps({"flights": 3, "to": arguments.get("to"), "è": "日本"}),
    "weather": lambda **_: "sunny",
}
TURNS = [
    [("call_a", "search", {"to": "Oslo"})],
    [("call_b", "weather", {}), ("call_c", "search", {"to": "Bergen"})],
]


def script(up: Upstream, turns: list[list[tuple[str, str, dict[str, str]]]]) -> None:
    """Both models ask for these tools, turn by turn, and then say hello."""

    def openai_turn(request: Request) -> Canned:
        said = sum(m["role"] == "assistant" for m in request.json()["messages"])
        make = openai_for(request.json())
        return make(tool_calls=turns[said]) if said < len(turns) else make()

    def anthropic_turn(request: Request) -> Canned:
        said = sum(m["role"] == "assistant" for m in request.json()["messages"])
        make = anthropic_for(request.json())
        return make(tool_calls=turns[said]) if said < len(turns) else make()

    up.reply(CHAT, openai_turn)
    up.reply(MESSAGES, anthropic_turn)


def with_openai(up: Upstream, *, stream: bool, call: Callable[..., str]) -> str:
    """A tool loop as people write it."""
    messages: list[Any] = [{"role": "user", "content": "a flight"}]
    with openai.OpenAI(base_url=f"{up.url}/v1", api_key="test", max_retries=2) as client:
        while True:
            if stream:
                with client.chat.completions.stream(model="gpt-4o", messages=messages) as events:
                    message = events.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
            for asked in message.tool_calls:
                result = call(asked.function.name, json.loads(asked.function.arguments))
                messages.append({"role": "tool", "tool_call_id": asked.id, "content": result})


def with_anthropic(up: Upstream, *, stream: bool, call: Callable[..., str]) -> str:
    """A tool loop as people write it; the assistant's blocks go back as they came."""
    messages: list[Any] = [{"role": "user", "content": "a flight"}]
    with anthropic.Anthropic(base_url=up.url, api_key="test", max_retries=2) as client:
        while True:
            request: dict[str, Any] = {"model": "claude", "max_tokens": 99, "messages": messages}
            if stream:
                with client.messages.stream(**request) as events:
                    reply = events.get_final_message()
            else:
                reply = client.messages.create(**request)
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in reply.content if block.type == "text")
            messages.append({"role": "assistant", "content": reply.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": call(block.name, block.input)}
                for block in calls
            ]
            messages.append({"role": "user", "content": results})


def plain(name: str, arguments: dict[str, str]) -> str:
    return TOOLS[name](**arguments)


AGENTS = {"openai": (with_openai, CHAT), "anthropic": (with_anthropic, MESSAGES)}
ARMS = [(sdk, stream) for sdk in AGENTS for stream in (False, True)]


def ask(
    up: Upstream, run: Run, sdk: str, *, stream: bool = False, call: Callable[..., str] = plain
) -> tuple[str, list[bytes]]:
    """The agent's answer, and the model requests that reached the upstream."""
    agent, path = AGENTS[sdk]
    before = len(up.requests)
    with inprocess.held(), run.crossing.active():
        answer = agent(up, stream=stream, call=call)
    return answer, [request.body for request in up.requests[before:] if request.path == path]


def told(body: bytes) -> dict[str, Any]:
    """What a model request says of each tool call, by call id."""
    found: dict[str, Any] = {}
    for message in json.loads(body)["messages"]:
        if message["role"] == "tool":
            found[message["tool_call_id"]] = message["content"]
        for block in message["content"] if isinstance(message.get("content"), list) else []:
            if block["type"] == "tool_result":
                found[block["tool_use_id"]] = (block["content"], block.get("is_error", False))
    return found


def spelled(sdk: str, said: str, *, failed: bool = False) -> Any:
    return (said, failed) if sdk == "anthropic" else said


OUTAGE = "Error: 503 Service Unavailable"


@pytest.mark.parametrize(("sdk", "stream"), ARMS)
def test_the_model_is_told_exactly_the_rewritten_result_on_every_turn(up: Upstream, sdk: str, stream: bool) -> None:
    script(up, TURNS)
    _, untouched = ask(up, run_of(), sdk, stream=stream)
    run = run_of(ToolFault(tool="search", mode="error"))

    answer, sent = ask(up, run, sdk, stream=stream)

    assert answer == HELLO
    bergen = spelled(sdk, plain("search", {"to": "Bergen"}))
    outage = spelled(sdk, OUTAGE, failed=True)
    assert [told(body) for body in sent] == [
        {},
        {"call_a": outage},
        {"call_a": outage, "call_b": spelled(sdk, "sunny"), "call_c": outage},
    ]
    assert told(untouched[2])["call_c"] == bergen
    model = "gpt-4o" if sdk == "openai" else "claude"
    assert run.fired == [
        ("tool/search#1", "error", f"llm/{model}#2"),
        ("tool/search#2", "error", f"llm/{model}#3"),
    ]
    assert [exchange.body for exchange in run.exchanges] == untouched, "the tape has what the agent asked"
    assert [exchange.world_body or exchange.body for exchange in run.exchanges] == sent
    assert [[str(f.site) for f in exchange.faults] for exchange in run.exchanges] == [
        [],
        ["tool/search#1"],
        ["tool/search#2"],
    ]


@pytest.mark.parametrize(("sdk", "stream"), ARMS)
def test_an_untouched_run_sends_every_byte_as_the_agent_wrote_it(up: Upstream, sdk: str, stream: bool) -> None:
    script(up, TURNS)
    _, untouched = ask(up, run_of(), sdk, stream=stream)
    run = run_of(ToolFault(tool="pay", mode="error"), ToolFault(tool="search", mode="error", where="call"))

    _, sent = ask(up, run, sdk, stream=stream)

    assert sent == untouched == [exchange.body for exchange in run.exchanges]
    assert (run.fired, run.ledger.matched) == ([], {})


@pytest.mark.parametrize("sdk", AGENTS)
def test_the_bytes_around_a_rewritten_result_are_those_the_agent_wrote(up: Upstream, sdk: str) -> None:
    script(up, TURNS)
    _, untouched = ask(up, run_of(), sdk)
    _, sent = ask(up, run_of(ToolFault(tool="weather", mode="malicious_response", payload="obey")), sdk)

    assert sent[:2] == untouched[:2]
    assert sent[2] == untouched[2].replace(b'"sunny"', b'"obey"')
    assert sent[2] != untouched[2]


@pytest.mark.parametrize("sdk", AGENTS)
def test_triggers_count_distinct_results_and_not_their_resending(up: Upstream, sdk: str) -> None:
    script(up, [[(f"call_{n}", "search", {"to": "Oslo"})] for n in range(4)])
    run = run_of(ToolFault(tool="search", mode="empty", where="result", calls=[2, 4]))

    _, sent = ask(up, run, sdk)

    assert [str(firing.site) for firing in run.ledger.fired] == ["tool/search#2", "tool/search#4"]
    whole, nothing = spelled(sdk, plain("search", {"to": "Oslo"})), spelled(sdk, "")
    assert list(told(sent[-1]).values()) == [whole, nothing, whole, nothing]
    assert list(told(sent[-2]).values()) == [whole, nothing, whole]


@pytest.mark.parametrize("sdk", AGENTS)
def test_a_retry_is_told_the_same_and_is_no_new_occurrence(up: Upstream, sdk: str) -> None:
    script(up, TURNS[:1])
    path = AGENTS[sdk][1]
    scripted = up._scripts[path][0]
    busy = text("{}", status=500, content_type="application/json")
    busy = Canned(busy.pieces, busy.status, (*busy.headers, ("retry-after-ms", "1")))
    up.reply(path, scripted, busy, scripted)
    run = run_of(ToolFault(tool="search", mode="error", calls=[1]))

    answer, sent = ask(up, run, sdk)

    assert (answer, len(sent)) == (HELLO, 3)
    assert sent[1] == sent[2]
    assert told(sent[2]) == {"call_a": spelled(sdk, OUTAGE, failed=True)}
    assert [str(firing.site) for firing in run.ledger.fired] == ["tool/search#1"]


@pytest.mark.parametrize("sdk", AGENTS)
def test_a_result_whose_request_a_model_fault_answered_waits_for_the_next(up: Upstream, sdk: str) -> None:
    script(up, TURNS[:1])
    limit = LlmFault(mode="rate_limit", calls=[2], retry_after_ms=1)
    run = run_of(ToolFault(tool="search", mode="error"), limit)

    answer, sent = ask(up, run, sdk)

    assert (answer, len(sent)) == (HELLO, 2)
    assert told(sent[1]) == {"call_a": spelled(sdk, OUTAGE, failed=True)}
    model = "gpt-4o" if sdk == "openai" else "claude"
    assert run.fired == [
        (f"llm/{model}#2", "rate_limit", ""),
        ("tool/search#1", "error", f"llm/{model}#3"),
    ]
    assert run.ledger.masked == []


def over_http(up: Upstream) -> Callable[..., str]:
    """The same tools, `search` asking a service."""

    def call(name: str, arguments: dict[str, str]) -> str:
        if name != "search":
            return plain(name, arguments)
        reply = httpx.get(f"{up.url}/search", params=arguments)
        return reply.text if reply.status_code == 200 else "from my cache: 2 flights"

    return call


@pytest.mark.parametrize("tools", [(("search", "*/search*"),), ()], ids=["named", "unnamed"])
@pytest.mark.parametrize("sdk", AGENTS)
def test_by_default_a_tool_that_a_seam_sees_is_broken_once_and_its_result_left_alone(
    up: Upstream, sdk: str, tools: tuple[tuple[str, str], ...]
) -> None:
    script(up, TURNS)
    up.reply("/search", document({"flights": 3}))
    run = run_of(ToolFault(tool="*", mode="error"), tools=tools)

    _, sent = ask(up, run, sdk, call=over_http(up))

    assert up.count("/search") == 0
    cached = spelled(sdk, "from my cache: 2 flights")
    assert told(sent[2])["call_a"] == told(sent[2])["call_c"] == cached
    kinds = [firing.site.kind for firing in run.ledger.fired]
    assert kinds.count("tool" if tools else "http") >= 2


@pytest.mark.parametrize("sdk", AGENTS)
def test_by_default_a_named_fault_takes_calls_of_one_tool_and_results_of_another(up: Upstream, sdk: str) -> None:
    script(up, TURNS)
    up.reply("/search", document({"flights": 3}))
    run = run_of(
        ToolFault(tool="search", mode="error"),
        ToolFault(tool="weather", mode="error", error_code=500),
        tools=(("search", "*/search*"),),
    )

    _, sent = ask(up, run, sdk, call=over_http(up))

    assert told(sent[2])["call_b"] == spelled(sdk, "Error: 500 Internal Server Error", failed=True)
    assert told(sent[2])["call_c"] == spelled(sdk, "from my cache: 2 flights")
    assert [str(f.site) for f in run.ledger.fired] == ["tool/search#1", "tool/search#2", "tool/weather#1"]


@pytest.mark.parametrize("sdk", AGENTS)
def test_where_result_never_touches_the_call(up: Upstream, sdk: str) -> None:
    script(up, TURNS)
    up.reply("/search", document({"flights": 3}))
    run = run_of(ToolFault(tool="search", mode="error", where="result"), tools=(("search", "*/search*"),))

    _, sent = ask(up, run, sdk, call=over_http(up))

    assert up.count("/search") == 2
    assert told(sent[2])["call_a"] == spelled(sdk, OUTAGE, failed=True)


@pytest.mark.parametrize("sdk", AGENTS)
def test_where_call_never_touches_the_result(up: Upstream, sdk: str) -> None:
    script(up, TURNS)
    run = run_of(ToolFault(tool="search", mode="error", where="call"))

    _, sent = ask(up, run, sdk)

    assert told(sent[2])["call_a"] == spelled(sdk, plain("search", {"to": "Oslo"}))
    assert run.ledger.fired == []
