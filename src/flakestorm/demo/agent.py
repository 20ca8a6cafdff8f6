"""A travel-booking agent as people write them: OpenAI's SDK in a tool loop, tools over HTTP, a small web server.

It knows nothing of flakestorm. One line in it is wrong, in a way that no test with working tools can show; can you see
it before flakestorm does?

    python -m flakestorm.demo.agent --port 8000        needs OPENAI_BASE_URL, OPENAI_API_KEY, FLAKESTORM_DEMO_TOOLS_URL
    curl localhost:8000/invoke -d '{"input": "Book a flight to Oslo on 12 May for Ada Lovelace."}'
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from openai import OpenAI, OpenAIError

from flakestorm.demo.server import Answer, Ask, listen

__all__ = ["TravelAgent", "main"]

MODEL = "gpt-4o-mini"
TURNS = 8
TOOL_TIMEOUT_S = 5.0
TOOL_FAILURES = (OSError, HTTPException, ValueError)  # not reached or refused, cut off, not JSON
SYSTEM = "You are a travel assistant. Search before you book, book the cheapest flight, and never invent a booking."

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "search_flights",
            "description": "Flights to a city on a day.",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "date": {"type": "string"}},
                "required": ["to", "date"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "book_flight",
            "description": "Book a flight for a passenger.",
            "parameters": {
                "type": "object",
                "properties": {
                    "flight": {"type": "string"},
                    "date": {"type": "string"},
                    "passenger": {"type": "string"},
                },
                "required": ["flight", "date", "passenger"],
            },
        },
    },
]


class TravelAgent:
    """Answers one request at a time; keeps nothing between them.

    Args:
        tools_url: where the flight search and the booking desk are.
        client: the model; by default what `OPENAI_BASE_URL` and `OPENAI_API_KEY` say.
    """

    def __init__(self, tools_url: str, client: OpenAI | None = None) -> None:
        self.tools_url = tools_url.rstrip("/")
        self.client = client or OpenAI()

    def answer(self, request: str) -> str:
        """The traveller's request in, the assistant's answer out."""
        messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": request}]
        cut_short = 0
        for _ in range(TURNS):
            try:
                reply = self.client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
            except OpenAIError as error:  # after the SDK's own retries
                return f"I am sorry, I cannot answer right now ({type(error).__name__}). Please try again later."
            choice = reply.choices[0]
            if choice.finish_reason == "length":  # half an answer, or half a tool call: neither is one
                cut_short += 1
                if cut_short < 2:
                    continue
                return "I am sorry, my answer was cut short. Please check your bookings before you try again."
            if not choice.message.tool_calls:
                return choice.message.content or ""
            messages.append(choice.message.model_dump(exclude_none=True))
            for call in choice.message.tool_calls:
                if call.type == "function":
                    result = self.use(call.function.name, call.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
        return "I am sorry, I could not finish this. Please ask again in other words."

    def use(self, tool: str, arguments: str) -> Any:
        """One tool, as the model asked for it; what goes wrong is told to the model."""
        try:
            given = json.loads(arguments)
            if tool == "search_flights":
                return self.search_flights(given["to"], given["date"])
            if tool == "book_flight":
                return self.book_flight(given["flight"], given["date"], given["passenger"])
        except (ValueError, KeyError, TypeError) as error:
            return {"error": f"wrong arguments: {error!r}"}
        return {"error": f"there is no tool {tool!r}"}

    def search_flights(self, to: str, date: str) -> Any:
        try:
            return self._fetch(f"/flights?{urlencode({'to': to, 'date': date})}")
        except TOOL_FAILURES as error:
            return {"error": f"the flight search failed: {error}"}

    def book_flight(self, flight: str, date: str, passenger: str) -> Any:
        order = {"flight": flight, "date": date, "passenger": passenger}
        try:
            return self._fetch("/bookings", json.dumps(order).encode())
        except TOOL_FAILURES:
            # The planted bug. "The desk is slow at times, but it queues every order", somebody thought, and so a
            # failure is passed on as a success. The model has no reason to doubt it, and tells the traveller.
            return {"status": "accepted", "flight": flight}

    def _fetch(self, path: str, body: bytes | None = None) -> Any:
        request = Request(self.tools_url + path, data=body, headers={"content-type": "application/json"})  # noqa: S310 - the operator's own URL
        with urlopen(request, timeout=TOOL_TIMEOUT_S) as reply:  # noqa: S310 - the same
            return json.load(reply)


def main(argv: Sequence[str] | None = None, make: type[TravelAgent] = TravelAgent) -> None:
    """Serve `POST /invoke {"input": ...} -> {"output": ...}`, `GET /health` and `POST /reset` until killed."""
    parser = argparse.ArgumentParser(prog="python -m flakestorm.demo.agent", description=main.__doc__)
    parser.add_argument("--port", type=int, default=8000)
    agent = make(os.environ["FLAKESTORM_DEMO_TOOLS_URL"])

    def respond(ask: Ask) -> Answer:
        match ask.method, ask.path:
            case "GET", "/health":
                return Answer(body={"status": "ok"})
            case "POST", "/reset":  # nothing is kept between requests
                return Answer(body={"status": "ok"})
            case "POST", "/invoke":
                if not isinstance(ask.body, dict) or not isinstance(ask.body.get("input"), str):
                    return Answer(400, {"error": "send a JSON object with a text under 'input'"})
                return Answer(body={"output": agent.answer(ask.body["input"])})
        return Answer(404, {"error": f"no such operation: {ask.method} {ask.path}"})

    with listen(respond, port=parser.parse_args(argv).port) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
