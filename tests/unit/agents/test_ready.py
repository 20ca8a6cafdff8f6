"""Ports, and waiting for a launched agent."""

import os
import socket
import sys
from pathlib import Path

import pytest
from aiohttp import web

from agents_support import serving
from flakestorm.agents.process import Program
from flakestorm.agents.ready import address, free_port, listening, until_ready
from flakestorm.errors import AgentUnreachable, ConfigError


def program(code: str, folder: Path) -> Program:
    return Program([sys.executable, "-c", code], cwd=folder, env=dict(os.environ))


def test_free_ports_are_free_and_differ() -> None:
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == 50
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", ports[-1]))


async def test_listening() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert not await listening("127.0.0.1", port)
        server.listen()
        assert await listening("127.0.0.1", port)
        assert await listening("localhost", port)


def test_addresses() -> None:
    assert address("http://localhost/ask", key="k") == ("localhost", 80)
    assert address("https://h:1/", key="k") == ("h", 1)
    for wrong in ("localhost:8000", "ftp://x/", "http://", "agent:run", "http://h:99999999/"):
        with pytest.raises(ConfigError, match=r"^agent\.endpoint: .* is not an HTTP URL"):
            address(wrong, key="agent.endpoint")


async def test_a_url_is_ready_once_it_answers_below_500(tmp_path: Path) -> None:
    answers = [503, 500, 404]

    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(status=answers.pop(0))

    async with serving(handler) as url:
        agent = program("import sys; open(sys.argv[0]) if 0 else __import__('threading').Event().wait()", tmp_path)
        try:
            await until_ready(agent, f"{url}/health", url, limit_s=20)
        finally:
            agent.kill()
            await agent.wait()
    assert answers == []


@pytest.mark.parametrize("kind", ["url", "port", "digits", "endpoint"])
async def test_an_agent_that_does_not_get_ready_says_what_was_missing(tmp_path: Path, kind: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    ready = {"url": url, "port": port, "digits": str(port), "endpoint": None}[kind]
    code = "import threading; print('loading the model', flush=True); threading.Event().wait()"
    agent = program(code, tmp_path)
    try:
        with pytest.raises(AgentUnreachable, match=r"not ready within 0\.3 s: .*" + str(port)):
            await until_ready(agent, ready, url, limit_s=0.3)
    finally:
        agent.kill()
        await agent.wait()


async def test_an_agent_that_ends_before_it_is_ready_shows_its_last_lines(tmp_path: Path) -> None:
    agent = program("raise SystemExit('no model configured')", tmp_path)
    with pytest.raises(AgentUnreachable, match=r"ended before it was ready: it exited with code 1.*\n.*no model"):
        await until_ready(agent, None, f"http://127.0.0.1:{free_port()}/", limit_s=20)
