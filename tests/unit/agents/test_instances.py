"""Launched HTTP agents: real processes, one run at a time each, and none left behind."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from agents_support import HOLD, LAUNCH, FakeBoundary, FakeLine, config, echo_agent, lifelines
from flakestorm.agents.http import HttpAgent
from flakestorm.agents.instances import environment, fill_port, uses_port
from flakestorm.agents.ready import free_port
from flakestorm.config.model import Agent
from flakestorm.core.answer import Answer
from flakestorm.errors import AgentUnreachable, ConfigError


class Launched:
    """The echo agent, started and stopped."""

    def __init__(self, folder: Path, *, concurrency: int = 2, **agent: Any) -> None:
        echo_agent(folder)
        self.boundary = FakeBoundary()
        self.agent = HttpAgent(config(folder, **{**LAUNCH, **agent}), self.boundary, concurrency=concurrency)
        self._runs = 0

    async def __aenter__(self) -> "Launched":
        try:
            await self.agent.start()
        except BaseException:
            await self.agent.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.agent.close()
        assert all(channel.closed for channel in self.boundary.channels)

    async def ask(self, prompt: str) -> Answer:
        self._runs += 1
        return await self.agent.ask(prompt, FakeLine(f"r-{self._runs}"))


def told(answer: Answer) -> dict[str, Any]:
    assert answer.error is None, answer.error
    return dict(json.loads(answer.output))


async def test_an_instance_that_is_still_at_work_is_not_used_again(tmp_path: Path) -> None:
    async with Launched(tmp_path) as launched:
        first = told(await launched.ask("a"))
        launched.boundary.channels[0].quiet = False
        second = told(await launched.ask("b"))
    assert first["pid"] != second["pid"]
    assert [channel.runs for channel in launched.boundary.channels] == [["r-1"], ["r-2"]]


async def test_an_instance_is_launched_once_and_reused(tmp_path: Path) -> None:
    async with Launched(tmp_path) as launched:
        first, second = told(await launched.ask("a")), told(await launched.ask("b"))
    assert (first["echo"], second["echo"]) == ("a", "b")
    assert first["pid"] == second["pid"]
    assert first["token"] == "token-0"
    assert [channel.runs for channel in launched.boundary.channels] == [["r-1", "r-2"]]


async def test_runs_at_the_same_time_get_an_instance_each(tmp_path: Path) -> None:
    async with Launched(tmp_path, concurrency=2) as launched:
        answers = [told(a) for a in await asyncio.gather(*(launched.ask(str(n)) for n in range(4)))]
    assert sorted(answer["echo"] for answer in answers) == ["0", "1", "2", "3"]
    assert {answer["token"] for answer in answers} == {"token-0", "token-1"}
    assert len({answer["pid"] for answer in answers}) == 2


async def test_a_fixed_port_means_one_instance(tmp_path: Path) -> None:
    port = free_port()
    start = [sys.executable, "agent.py", str(port)]
    async with Launched(tmp_path, start=start, endpoint=f"http://127.0.0.1:{port}/", concurrency=4) as launched:
        answers = [told(a) for a in await asyncio.gather(*(launched.ask("x") for _ in range(3)))]
        assert (await launched.ask("die")).error is not None
        again = told(await launched.ask("back on the same port"))
    assert {answer["token"] for answer in answers} == {"token-0"}
    assert again["token"] == "token-1"


async def test_a_fixed_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", 0))
        taker.listen()
        port = taker.getsockname()[1]
        wanted = (
            rf"port {port} is already in use by another program; stop it or use {{port}} in start, endpoint and ready"
        )
        with pytest.raises(AgentUnreachable, match=wanted):
            async with Launched(tmp_path, start=["python", "agent.py"], endpoint=f"http://127.0.0.1:{port}/"):
                pass


async def test_an_instance_that_dies_is_a_crash_with_its_last_lines_and_is_replaced(tmp_path: Path) -> None:
    async with Launched(tmp_path, retries=2) as launched:
        before = told(await launched.ask("a"))
        answer = await launched.ask("die now")
        after = told(await launched.ask("b"))
    assert answer.error is not None
    assert answer.error.kind == "crash"
    assert "exited with code 7" in answer.error.message
    assert "about to die of die now" in answer.error.message
    assert answer.status == 7
    assert after["pid"] != before["pid"]
    assert (before["token"], after["token"]) == ("token-0", "token-1")


async def test_an_instance_that_ran_out_of_time_is_killed_with_its_children_and_replaced(tmp_path: Path) -> None:
    async with lifelines() as lines:
        hold = HOLD.format(port=lines.port)
        async with Launched(tmp_path, timeout=1000, env={"HOLD": hold}) as launched:
            answer, child = await asyncio.gather(launched.ask("hang"), lines.next())
            assert answer.error is not None
            assert answer.error.kind == "timeout"
            assert await lines.broken(child)
            assert told(await launched.ask("b"))["token"] == "token-1"


async def test_cancelling_a_run_leaves_no_process(tmp_path: Path) -> None:
    async with lifelines() as lines, Launched(tmp_path, env={"HOLD": HOLD.format(port=lines.port)}) as launched:
        run = asyncio.create_task(launched.ask("hang"))
        child = await lines.next()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await lines.broken(child)
        assert launched.boundary.channels[0].closed


async def test_cancelling_a_launch_leaves_no_process(tmp_path: Path) -> None:
    async with lifelines() as lines:
        start = [sys.executable, "-c", HOLD.format(port=lines.port), "{port}"]
        launched = Launched(tmp_path, start=start)
        starting = asyncio.create_task(launched.agent.start())
        held = await lines.next()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert await lines.broken(held)
        await launched.agent.close()
        assert launched.boundary.channels[0].closed


async def test_an_instance_that_dies_at_start_is_unreachable_with_its_last_lines(tmp_path: Path) -> None:
    start = [sys.executable, "-c", "import sys; sys.exit('no model for port ' + sys.argv[1])", "{port}"]
    with pytest.raises(AgentUnreachable, match=r"exited with code 1; its last lines:\n    no model for port \d+"):
        async with Launched(tmp_path, start=start):
            pass


async def test_a_replacement_that_cannot_start_leaves_its_run_unjudged(tmp_path: Path) -> None:
    async with Launched(tmp_path) as launched:
        await launched.ask("die")
        (tmp_path / "agent.py").write_text("raise SystemExit('broken by an update')")
        answer = await launched.ask("b")
        assert answer.error is not None
        assert answer.error.kind == "unreachable"
        assert "broken by an update" in answer.error.message
        echo_agent(tmp_path)
        assert told(await launched.ask("c"))["echo"] == "c"


async def test_an_unlucky_port_is_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", 0))
        ports = iter([taker.getsockname()[1], free_port()])
        monkeypatch.setattr("flakestorm.agents.instances.free_port", lambda: next(ports))
        async with Launched(tmp_path) as launched:
            assert told(await launched.ask("a"))["token"] == "token-1"


async def test_the_instance_that_serves_the_run_is_the_one_that_is_reset(tmp_path: Path) -> None:
    async with Launched(tmp_path, reset_endpoint="http://127.0.0.1:{port}/reset") as launched:
        answers = [told(a) for a in await asyncio.gather(*(launched.ask(str(n)) for n in range(5)))]
    assert {answer["runs"] for answer in answers} == {1}
    assert len({answer["pid"] for answer in answers}) == 2


async def test_a_reset_that_fails_leaves_the_run_unjudged(tmp_path: Path) -> None:
    async with Launched(tmp_path, reset_endpoint="/bad-reset") as launched:
        answer = await launched.ask("a")
    assert answer.error is not None
    assert answer.error.kind == "unreachable"
    assert "reset failed" in answer.error.message
    assert "the store is locked" in answer.error.message
    assert launched.boundary.channels[0].runs == []


async def test_the_environment_is_the_callers_then_the_agents_then_the_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_CALLER", "1")
    (tmp_path / "sub").mkdir()
    code = (
        "import http.server, json, os\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        body = json.dumps({'output': {**os.environ, 'cwd': os.getcwd()}}).encode()\n"
        "        self.send_response(200); self.end_headers(); self.wfile.write(body)\n"
        "http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), H).serve_forever()\n"
    )
    env = {"PORT": "{port}", "GIVEN": "by the agent block", "OPENAI_BASE_URL": "http://upstream/v1"}
    async with Launched(tmp_path, start=[sys.executable, "-c", code], env=env, cwd="sub") as launched:
        told_env = told(await launched.ask("x"))
    offered = launched.boundary.envs[0]
    assert offered["OPENAI_BASE_URL"] == "http://upstream/v1"
    assert offered["FROM_CALLER"] == told_env["FROM_CALLER"] == "1"
    assert offered["PORT"] == told_env["PORT"]
    assert told_env["GIVEN"] == "by the channel"
    assert told_env["cwd"] == str((tmp_path / "sub").resolve())


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ({"start": "run {port}", "endpoint": "http://a:8000/"}, "endpoint must use it too"),
        ({"start": "run", "endpoint": "http://a:8000/", "ready": "http://a:{port}/"}, "endpoint must use it too"),
    ],
)
def test_ports_that_do_not_fit_together_are_refused(agent: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        uses_port(Agent(**agent))


def test_filling_in_the_port() -> None:
    assert fill_port("x {port} {port}", 7) == "x 7 7"
    assert fill_port("x {port}", None) == "x {port}"


def test_the_agent_learns_its_port_where_it_was_told_and_in_port() -> None:
    assert environment(Agent(endpoint="x", env={"P": "{port}"}), 7) == {**os.environ, "P": "7", "PORT": "7"}
    assert environment(Agent(endpoint="x", env={"PORT": "9"}), 7)["PORT"] == "9"
    assert environment(Agent(endpoint="x", env={"P": "1"}), None) == {**os.environ, "P": "1"}
