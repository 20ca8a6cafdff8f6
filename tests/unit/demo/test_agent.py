from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import OpenAI

from flakestorm.demo.agent import TravelAgent
from flakestorm.demo.model import ScriptedModel
from flakestorm.demo.server import Answer, Ask, serving
from flakestorm.demo.services import Services

BOOK = "Book the cheapest flight to Oslo on 12 May for Ada Lovelace."


class World:
    """The agent's model and tools; a test may put something in their place."""

    def __init__(self) -> None:
        self.services = Services()
        self.model: Callable[[Ask], Answer] = ScriptedModel()
        self.tools: Callable[[Ask], Answer] = self.services
        self.asked: list[Any] = []

    def answer_as_model(self, ask: Ask) -> Answer:
        self.asked.append(ask.body)
        return self.model(ask)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def agent(world: World) -> Iterator[TravelAgent]:
    with (
        serving(world.answer_as_model) as model,
        serving(lambda ask: world.tools(ask)) as tools,
        OpenAI(base_url=f"{model}/v1", api_key="none", max_retries=0) as client,
    ):
        yield TravelAgent(tools, client)


def test_it_books_when_all_is_well(world: World, agent: TravelAgent) -> None:
    answer = agent.answer(BOOK)
    assert answer.startswith("Your flight NW-118 to Oslo on 12 May is booked. Your reference is FS")
    assert world.services.counts == {"search": 1, "book": 1}
    assert len(world.asked) == 3


def test_it_admits_a_search_outage(world: World, agent: TravelAgent) -> None:
    world.tools = lambda _: Answer(503, {"error": "down"})
    assert "search is unavailable" in agent.answer(BOOK)


def test_the_planted_bug_a_failed_booking_is_told_as_a_success(world: World, agent: TravelAgent) -> None:
    world.tools = lambda ask: world.services(ask) if ask.method == "GET" else Answer(504, {"error": "timeout"})
    assert "is booked" in agent.answer(BOOK)
    assert world.services.bookings == []


def cut(ask: Ask) -> Answer:
    reply = ScriptedModel()(ask)
    reply.body["choices"][0]["finish_reason"] = "length"
    return reply


def test_a_reply_cut_short_is_asked_for_again_once(world: World, agent: TravelAgent) -> None:
    replies = iter([cut, ScriptedModel(), ScriptedModel(), ScriptedModel()])
    world.model = lambda ask: next(replies)(ask)
    assert "is booked" in agent.answer(BOOK)
    world.model = cut
    assert agent.answer(BOOK).startswith("I am sorry, my answer was cut short.")


def test_a_model_that_fails_is_admitted(world: World, agent: TravelAgent) -> None:
    world.model = lambda _: Answer(429, {"error": {"message": "slow down", "type": "requests", "code": None}})
    assert agent.answer(BOOK) == "I am sorry, I cannot answer right now (RateLimitError). Please try again later."


def test_a_model_that_never_ends_is_stopped(world: World, agent: TravelAgent) -> None:
    first = ScriptedModel()(Ask("POST", "/v1/chat/completions", body={"messages": [{"role": "user", "content": BOOK}]}))
    world.model = lambda _: first
    assert "could not finish" in agent.answer(BOOK)
    assert len(world.asked) == 8


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("search_flights", '{"to": "Os', "wrong arguments"),
        ("search_flights", "{}", "wrong arguments"),
        ("book_flight", "[]", "wrong arguments"),
        ("launch_rocket", "{}", "there is no tool 'launch_rocket'"),
    ],
)
def test_a_tool_asked_for_wrongly_is_told_to_the_model(
    agent: TravelAgent, tool: str, arguments: str, says: str
) -> None:
    assert says in agent.use(tool, arguments)["error"]


def test_it_serves_over_http_as_a_program() -> None:
    with serving(ScriptedModel()) as model, serving(Services()) as tools:
        code = (
            "from flakestorm.demo import agent, server; made = server.listen\n"
            "def listen(*a, **k):\n"
            "    s = made(*a, **k); print(s.server_port, flush=True); return s\n"
            "agent.listen = listen; agent.main(['--port', '0'])"
        )
        env = os.environ | {"OPENAI_BASE_URL": f"{model}/v1", "OPENAI_API_KEY": "x", "FLAKESTORM_DEMO_TOOLS_URL": tools}
        program = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
        try:
            assert program.stdout is not None
            port = int(program.stdout.readline())
            assert ask(port, "GET", "/health") == (200, {"status": "ok"})
            assert ask(port, "POST", "/reset") == (200, {"status": "ok"})
            status, said = ask(port, "POST", "/invoke", {"input": BOOK})
            assert status == 200
            assert "is booked" in said["output"]
            assert ask(port, "POST", "/invoke", ["?"])[0] == 400
            assert ask(port, "GET", "/invoke")[0] == 404
        finally:
            program.kill()
            program.communicate()


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, body=None if body is None else json.dumps(body))
    reply = connection.getresponse()
    found = reply.status, json.loads(reply.read())
    connection.close()
    return found
