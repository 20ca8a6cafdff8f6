"""Function tools behind OpenAI's Responses API, where the provider may keep the conversation: the real SDK."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from flakestorm.boundary import inprocess
from flakestorm.config.model import ToolFault
from results_support import Run, run_of
from upstream import Canned, Request, Upstream, document, sse

PATH = "/v1/responses"
OUTAGE = "Error: 503 Service Unavailable"
TURNS = [[("call_a", "search")], [("call_b", "weather"), ("call_c", "search")]]


def _response(number: int, calls: list[tuple[str, str]]) -> dict[str, Any]:
    text = {"type": "output_text", "text": "Hello.", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    items = [
        {"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": n, "arguments": "{}", "status": "completed"}
        for i, n in calls
    ]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5",
        "output": items or [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "output_tokens": 1,
            "total_tokens": 2,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def script(up: Upstream) -> None:
    """The model asks for the tools of each turn and then says hello; it counts turns by response id or by history."""

    def turn(request: Request) -> Canned:
        asked = request.json()
        kept = asked.get("previous_response_id")
        done = int(kept.removeprefix("resp_")) if kept else 0
        if not kept and isinstance(asked["input"], list):
            outputs = {item["call_id"] for item in asked["input"] if item.get("type") == "function_call_output"}
            done = sum(all(call_id in outputs for call_id, _ in calls) for calls in TURNS)
        whole = _response(done + 1, TURNS[done] if done < len(TURNS) else [])
        if not asked.get("stream"):
            return document(whole)
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
        ]
        for index, item in enumerate(whole["output"]):
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": "response.completed", "response": whole})
        return sse([{**event, "sequence_number": n} for n, event in enumerate(events)], named=True)

    up.reply(PATH, turn)


def agent(up: Upstream, *, stream: bool, kept: bool) -> str:
    """A tool loop; `kept` leaves the conversation with the provider."""
    history: list[Any] = [{"role": "user", "content": "a flight"}]
    news: list[Any] = list(history)
    previous: str | None = None
    with openai.OpenAI(base_url=f"{up.url}/v1", api_key="test") as client:
        while True:
            request: dict[str, Any] = {"model": "gpt-5", "input": news if kept else history}
            if kept and previous:
                request["previous_response_id"] = previous
            if stream:
                events = client.responses.create(**request, stream=True)
                reply = next(event.response for event in events if event.type == "response.completed")
            else:
                reply = client.responses.create(**request)
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return reply.output_text
            previous = reply.id
            history += [item.model_dump(exclude_none=True) for item in reply.output]
            news = [
                {"type": "function_call_output", "call_id": call.call_id, "output": f"the {call.name} result"}
                for call in calls
            ]
            history += news


def ask(up: Upstream, run: Run, *, stream: bool, kept: bool) -> list[bytes]:
    before = len(up.requests)
    with inprocess.held(), run.crossing.active():
        assert agent(up, stream=stream, kept=kept) == "Hello."
    return [request.body for request in up.requests[before:]]


def told(body: bytes) -> dict[str, str]:
    items = json.loads(body)["input"]
    return {item["call_id"]: item["output"] for item in items if item.get("type") == "function_call_output"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kept", [False, True], ids=["history", "previous_response_id"])
def test_a_function_tool_is_broken_by_name(up: Upstream, stream: bool, kept: bool) -> None:
    script(up)
    untouched = ask(up, run_of(), stream=stream, kept=kept)
    run = run_of(ToolFault(tool="search", mode="error"))

    sent = ask(up, run, stream=stream, kept=kept)

    last = {"call_b": "the weather result", "call_c": OUTAGE}
    assert [told(body) for body in sent] == [{}, {"call_a": OUTAGE}, last if kept else {"call_a": OUTAGE, **last}]
    assert run.fired == [("tool/search#1", "error", "llm/gpt-5#2"), ("tool/search#2", "error", "llm/gpt-5#3")]
    assert [exchange.body for exchange in run.exchanges] == untouched
    for before, after in zip(untouched, sent, strict=True):
        assert after == before.replace(b'"the search result"', json.dumps(OUTAGE).encode())


@pytest.mark.parametrize("kept", [False, True], ids=["history", "previous_response_id"])
def test_a_fault_for_another_tool_leaves_every_byte(up: Upstream, kept: bool) -> None:
    script(up)
    untouched = ask(up, run_of(), stream=False, kept=kept)
    run = run_of(ToolFault(tool="pay", mode="error"))
    assert ask(up, run, stream=False, kept=kept) == untouched
    assert run.ledger.fired == []
