from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from flakestorm.boundary.hub import Hub
from flakestorm.core.call import Call
from flakestorm.core.clock import Clock
from flakestorm.core.pipeline import Flow, chain
from flakestorm.engine.ports import Boundary
from gateway_support import Watch
from upstream import Upstream


@pytest.fixture
async def hub(up: Upstream) -> AsyncIterator[Hub]:
    it = Hub(environ={"OPENAI_BASE_URL": up.url})
    yield it
    await it.close()


def as_boundary(hub: Boundary) -> Boundary:
    """Checked by mypy: a hub is what the engine asks for."""
    return hub


async def test_calls_of_this_process_cross_on_an_active_line(hub: Hub, up: Upstream) -> None:
    watch = Watch()
    line = as_boundary(hub).line("r-1", chain(watch))
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.get(f"{up.url}/ok")
        with line.active():
            assert (await client.get(f"{up.url}/ok")).text == "fine"
    assert watch.urls == [f"{up.url}/ok"]


async def test_calls_of_a_launched_agent_cross_once(hub: Hub, up: Upstream) -> None:
    watch = Watch()
    line = hub.line("r-1", chain(watch))
    with line.active():  # the gateway is started inside a run, and still its own calls belong to none
        channel = await hub.channel({})
    with channel.bind(line):
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{channel.env['OPENAI_BASE_URL']}/ok")).text == "fine"
    assert watch.urls == [f"{up.url}/ok"]
    assert up.count() == 1


async def test_the_agents_environment_names_the_upstream(hub: Hub, up: Upstream) -> None:
    channel = await hub.channel({"OPENAI_BASE_URL": "http://127.0.0.1:1"})
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{channel.env['OPENAI_BASE_URL']}/ok")).status_code == 502
    assert up.count() == 0


async def test_channels_share_one_gateway(hub: Hub) -> None:
    one, two = await hub.channel({}), await hub.channel({})
    gateway = await hub.gateway()
    assert one.token != two.token
    assert all(f":{gateway.port}/" in channel.env["FLAKESTORM_GATEWAY"] for channel in (one, two))
    two.close()
    assert gateway.passages == 1


async def test_close_stops_everything_and_may_be_called_twice(up: Upstream) -> None:
    before = httpx.HTTPTransport.handle_request
    hub = Hub(environ={})
    with hub.line("r-1", chain()).active():
        assert httpx.HTTPTransport.handle_request is not before
    url = (await hub.channel({"OPENAI_BASE_URL": up.url})).env["OPENAI_BASE_URL"]
    await hub.close()
    await hub.close()
    assert httpx.HTTPTransport.handle_request is before
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{url}/ok")


async def test_tools_are_held_until_the_hub_closes() -> None:
    calls: list[str] = []

    def seen(call: Call) -> Flow:
        calls.append(call.name)
        return (yield call)  # type: ignore[return-value]  # a driver sends replies

    def search() -> str:
        return "found"

    hub = Hub(environ={})
    code, held = search.__code__, hub.tool("search", search)
    assert (held.function, hub.tools) == (search, ("search",))
    with hub.line("r-1", chain(seen)).active():
        assert search() == "found"
    await hub.close()
    assert (search.__code__, calls) == (code, ["search"])


async def test_lines_entered_in_several_threads_put_the_seams_in_once() -> None:
    before = httpx.HTTPTransport.handle_request
    hub = Hub(environ={})

    def enter(number: int) -> bool:
        with hub.line(f"r-{number}", chain()).active():
            return httpx.HTTPTransport.handle_request is not before

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(enter, range(32)))
    await hub.close()
    assert httpx.HTTPTransport.handle_request is before


async def test_a_line_that_nobody_enters_leaves_every_library_alone() -> None:
    before = httpx.HTTPTransport.handle_request
    hub = Hub(environ={})
    hub.line("r-1", chain())
    assert httpx.HTTPTransport.handle_request is before
    await hub.close()
    assert httpx.HTTPTransport.handle_request is before


def test_the_gateway_is_not_imported_before_something_is_launched() -> None:
    code = (
        "import sys\nfrom flakestorm.boundary.hub import Hub\nHub(environ={}).line('r-1', None)\n"
        "print(sorted({'aiohttp', 'flakestorm.boundary.gateway', 'flakestorm.boundary.inprocess'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_where_the_extra_is_installed_the_gateway_looks_into_tunnels() -> None:
    hub = Hub(environ={})
    bundle = Path((await hub.channel({})).env["SSL_CERT_FILE"])
    assert "BEGIN CERTIFICATE" in bundle.read_text()
    await hub.close()
    assert not bundle.exists()


def test_a_line_keeps_the_clock_it_is_given() -> None:
    clock = Clock(lambda: 0.0)
    assert Hub(environ={}).line("r-1", chain(), clock).clock is clock
