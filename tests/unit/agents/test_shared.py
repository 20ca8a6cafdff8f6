"""One instance that all runs share; launched ones are in tests/e2e/test_load.py."""

import asyncio
import errno
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents_support import FakeLine, config, serving
from flakestorm.agents.client import ExchangeFailed
from flakestorm.agents.http import HttpAgent
from flakestorm.agents.ready import free_port
from flakestorm.agents.shared import SharedAgent
from flakestorm.core.turns import TURN_S
from flakestorm.errors import AgentUnreachable, ConfigError

LINE = FakeLine()


def shared(url: str, **agent: Any) -> SharedAgent:
    return SharedAgent(config(Path(), retries=5, endpoint=url, **agent))


async def test_all_runs_are_served_at_once_and_nothing_is_reset() -> None:
    everybody, paths = asyncio.Barrier(20), []

    async def handler(request: web.BaseRequest) -> web.Response:
        paths.append(request.path)
        await everybody.wait()
        return web.json_response({"output": (await request.json())["input"]})

    async with serving(handler) as url:
        agent = shared(f"{url}/ask", reset_endpoint="/reset", request_template='{"input": "{prompt}"}')
        await agent.start()
        try:
            answers = await asyncio.gather(*(agent.ask(str(at), LINE) for at in range(20)))
        finally:
            await agent.close()
    assert [answer.output for answer in answers] == [str(at) for at in range(20)]
    assert set(paths) == {"/ask"}


async def test_the_interpreter_is_left_as_it_was() -> None:
    async def handler(_: web.BaseRequest) -> web.Response:
        return web.json_response({"output": "hi"})

    before = sys.getswitchinterval()
    async with serving(handler) as url:
        agent = shared(url)
        await agent.start()
        await agent.start()
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
        await agent.close()
        await agent.close()
    assert sys.getswitchinterval() == before


async def test_a_refused_connection_is_the_agents_failure_and_is_not_tried_again(monkeypatch) -> None:
    asked = 0
    once = HttpAgent._send_once

    async def counting(self: HttpAgent, *args: Any) -> Any:
        nonlocal asked
        asked += 1
        return await once(self, *args)

    async def handler(_: web.BaseRequest) -> web.Response:
        return web.json_response({"output": "hi"})

    async with serving(handler) as url:
        agent = shared(url)
        await agent.start()
    monkeypatch.setattr(HttpAgent, "_send_once", counting)
    answer = await agent.ask("hello", LINE)
    await agent.close()
    assert answer.error is not None
    assert (answer.error.kind, asked) == ("crash", 1)
    assert "refused the connection" in answer.error.message


@pytest.mark.parametrize(
    ("how", "cause", "kind"),
    [
        ("refused", OSError(errno.EMFILE, "Too many open files"), "unreachable"),
        ("refused", OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"), "unreachable"),
        ("refused", OSError(errno.ECONNREFUSED, "Connection refused"), "crash"),
        ("refused", OSError("Multiple exceptions"), "crash"),
        ("timeout", TimeoutError(), "timeout"),
    ],
)
def test_whose_fault_it_is_that_there_is_no_connection(how: Any, cause: Exception, kind: str) -> None:
    error = ExchangeFailed(how, "why")
    error.__cause__ = cause
    assert shared("http://127.0.0.1:9")._asked._unreached("http://127.0.0.1:9", error).kind == kind


async def test_nobody_there_is_said_before_anything_is_asked() -> None:
    with pytest.raises(AgentUnreachable, match="nothing listens"):
        await shared(f"http://127.0.0.1:{free_port()}").start()


def test_a_config_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match="no start"):
        shared("http://127.0.0.1:{port}")
