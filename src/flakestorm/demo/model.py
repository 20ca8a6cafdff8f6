"""A model that needs no key: it speaks OpenAI's Chat Completions and decides by rules what a travel assistant says.

It has no memory and draws nothing at random: the reply follows from the messages alone, so every run can be repeated.
Like a real model it believes what its tools tell it, and it tells the traveller when they fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from flakestorm.demo.server import Answer, Ask

__all__ = ["ScriptedModel", "Step", "next_step"]

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_CITY = re.compile(r"\bto (?:be in )?([A-Z]\w+)")
_DATE = re.compile(rf"\b(\d{{1,2}} (?:{_MONTHS}))\b")
_PASSENGER = re.compile(r"\bfor ([A-Z]\w+ [A-Z]\w+)")
_BOOK = re.compile(r"(?i)\bbook\b")
_ONLY_LOOK = re.compile(r"(?i)\bdo(?:n't| not) book\b")


@dataclass(frozen=True, slots=True)
class Step:
    """What the model does next: it says `text`, or it asks for the tool `call` with `arguments`."""

    text: str = ""
    call: str = ""
    arguments: str = ""


def next_step(messages: Sequence[Mapping[str, Any]]) -> Step:
    """The decision: search, then book the cheapest flight if that was asked for, then tell."""
    asked = next((i for i in reversed(range(len(messages))) if messages[i].get("role") == "user"), None)
    if asked is None:
        return Step("How can I help you with your trip?")
    request = str(messages[asked].get("content") or "")
    city, date = _found(_CITY, request), _found(_DATE, request)
    if not city:
        return Step("I can search and book flights. Where would you like to go, and when?")
    results = _results(messages[asked + 1 :])
    if "search_flights" not in results:
        return _call("search_flights", to=city, date=date)
    found = results["search_flights"]
    if "book_flight" in results:
        return Step(_told_of_booking(results["book_flight"], _cheapest(found)[0], city, date))
    if "flights" not in found:
        return Step(
            f"I am sorry, the flight search is unavailable at the moment, so I could not look up flights to {city}. "
            "Nothing has been booked. Please try again later."
        )
    flight, price = _cheapest(found)
    if not flight:
        return Step(f"I found no flights to {city} on {date or 'that day'}. Nothing has been booked.")
    if not _BOOK.search(request) or _ONLY_LOOK.search(request):
        return Step(f"The cheapest flight to {city} on {date} is {flight} for {price:g} EUR.")
    return _call("book_flight", flight=flight, date=date, passenger=_found(_PASSENGER, request) or "the traveller")


class ScriptedModel:
    """The model as a server: `POST /v1/chat/completions`, whole or streamed, and `GET /v1/models`."""

    def __call__(self, ask: Ask) -> Answer:
        if ask.method == "GET" and ask.path == "/v1/models":
            return Answer(body={"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "demo"}]})
        if ask.method != "POST" or ask.path != "/v1/chat/completions":
            return _refuse(404, f"Unknown request URL: {ask.method} {ask.path}.", "unknown_url")
        body = ask.body if isinstance(ask.body, dict) else {}
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            return _refuse(400, "Missing required parameter: 'messages'.", "missing_required_parameter")
        reply = _completion(body, next_step(messages))
        if not body.get("stream"):
            return Answer(body=reply)
        options = body.get("stream_options")
        return Answer(
            events=tuple(_events(reply, usage=isinstance(options, dict) and bool(options.get("include_usage"))))
        )


def _results(messages: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What each tool said, by the tool's name; a result that is not an object counts as an error."""
    names = {
        call.get("id"): (call.get("function") or {}).get("name", "")
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    results: dict[str, dict[str, Any]] = {}
    for message in messages:
        if message.get("role") != "tool":
            continue
        try:
            said = json.loads(str(message.get("content") or ""))
        except ValueError:
            said = None
        results[names.get(message.get("tool_call_id"), "")] = (
            said if isinstance(said, dict) else {"error": "unreadable"}
        )
    return results


def _told_of_booking(result: Mapping[str, Any], flight: str, city: str, date: str) -> str:
    if result.get("reference"):
        return f"Your flight {flight} to {city} on {date} is booked. Your reference is {result['reference']}."
    if "error" in result:
        return f"I found flight {flight} to {city}, but I could not book it: the booking desk is unavailable."
    # The tool says that all went well. Why should a model doubt it?
    return f"Your flight {flight} to {city} on {date} is booked. The airline will send the confirmation by e-mail."


def _cheapest(found: Mapping[str, Any]) -> tuple[str, float]:
    """The cheapest flight and its price; an empty name where there is none."""
    flights = found.get("flights")
    offers = [f for f in flights if isinstance(f, dict)] if isinstance(flights, list) else []
    prices = [(f["price_eur"], str(f.get("flight", ""))) for f in offers if isinstance(f.get("price_eur"), int | float)]
    price, flight = min(prices, default=(0, ""))
    return flight, price


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def _call(tool: str, **arguments: str) -> Step:
    return Step(call=tool, arguments=json.dumps(arguments))


def _completion(request: Mapping[str, Any], step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None, "refusal": None}
    asked = json.dumps(request.get("messages"), sort_keys=True)
    mark = sha256(asked.encode()).hexdigest()[:24]  # the same question gets the same ids
    if step.call:
        function = {"name": step.call, "arguments": step.arguments}
        message["tool_calls"] = [{"id": f"call_{mark}", "type": "function", "function": function}]
    sizes = {"prompt_tokens": len(asked) // 4, "completion_tokens": len(step.text + step.arguments) // 4 + 1}
    finish = "tool_calls" if step.call else "stop"
    return {
        "id": f"chatcmpl-{mark}",
        "object": "chat.completion",
        "created": 1767225600,
        "model": request.get("model") or "scripted",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {**sizes, "total_tokens": sum(sizes.values())},
    }


def _events(reply: Mapping[str, Any], *, usage: bool) -> Iterator[str]:
    """The same reply as a stream, a few words per chunk."""
    head = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = reply["choices"][0]

    def event(delta: Mapping[str, Any], finish: str | None = None) -> str:
        chunk = {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}
        return f"data: {json.dumps(chunk | ({'usage': None} if usage else {}))}\n\n"

    yield event({"role": "assistant", "content": None if choice["message"].get("tool_calls") else ""})
    for number, call in enumerate(choice["message"].get("tool_calls") or ()):
        opened = {**call, "index": number, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield event({"tool_calls": [opened]})
        for part in _parts(call["function"]["arguments"]):
            yield event({"tool_calls": [{"index": number, "function": {"arguments": part}}]})
    for part in _parts(choice["message"]["content"] or ""):
        yield event({"content": part})
    yield event({}, choice["finish_reason"])
    if usage:
        yield f"data: {json.dumps({**head, 'choices': [], 'usage': reply['usage']})}\n\n"
    yield "data: [DONE]\n\n"


def _parts(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _refuse(status: int, message: str, code: str) -> Answer:
    return Answer(status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}})
