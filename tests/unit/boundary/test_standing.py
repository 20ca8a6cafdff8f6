from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
from aiohttp import web

from flakestorm.boundary.announcing import places
from flakestorm.boundary.hub import Hub
from flakestorm.boundary.standing import Standing
from flakestorm.core.pipeline import chain
from flakestorm.errors import AgentUnreachable, Misuse, TapeError
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.reader import Tape
from gateway_support import Watch
from tls_support import Private
from upstream import Upstream


def made(tmp_path: Path, up: Upstream, **more: object) -> Standing:
    environ = {"OPENAI_BASE_URL": up.url, "GROQ_BASE_URL": f"{up.url}/groq"}
    return Standing(tape=tmp_path / "sub" / "x.tape", store=tmp_path / "store", environ=environ, **more)  # type: ignore[arg-type]


async def get(url: str) -> int:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(url)).status_code


async def test_what_crosses_is_recorded_and_broken_as_asked(tmp_path: Path, up: Upstream) -> None:
    schedule = Schedule.injecting(["tool/ok#2=error:503"])
    standing = made(tmp_path, up, tools=[("ok", "*/ok")], schedule=schedule)
    await standing.start()
    assert set(standing.variables) >= {"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GROQ_BASE_URL"}
    assert not {"HTTP_PROXY", "FLAKESTORM_GATEWAY", "PYTHONPATH"} & set(standing.variables)
    assert {"HTTP_PROXY", "FLAKESTORM_GATEWAY", "PYTHONPATH"} <= set(standing.environment)
    url = f"{standing.variables['OPENAI_BASE_URL']}/ok"
    assert [await get(url), await get(url)] == [200, 503]
    await standing.close()
    await standing.close()
    assert (standing.exchanges, standing.fired, up.count()) == (2, 1, 1)
    tape = Tape.open(standing.tape)
    tape.verify()
    assert [str(exchange.site) for exchange in tape] == ["tool/ok#1", "tool/ok#2"]
    assert list(places({}, [tmp_path / "store"])) == []


async def test_a_run_borrows_its_port_and_gives_it_back(tmp_path: Path, up: Upstream) -> None:
    standing = made(tmp_path, up)
    await standing.start()
    url = f"{standing.variables['OPENAI_BASE_URL']}/ok"
    hub, watch = Hub(environ={}, stores=[tmp_path / "store"]), Watch()
    channel = await hub.standing()
    assert channel is not None
    assert hub.borrowed == f"http://127.0.0.1:{standing.port}"
    other = Hub(environ={}, stores=[tmp_path / "store"])
    with pytest.raises(AgentUnreachable, match="another run"):
        await other.standing()
    with channel.bind(hub.line("r-1", chain(watch))):
        assert await get(url) == 200
    assert await get(url) == 200  # between runs: untouched and on no tape, as for launched agents
    await hub.close()
    assert await get(url) == 200
    await standing.close()
    assert (len(watch.seen), standing.exchanges, up.count()) == (1, 1, 3)


async def test_without_one_there_is_no_channel(tmp_path: Path) -> None:
    hub = Hub(environ={}, stores=[tmp_path])
    assert await hub.standing() is None
    await hub.close()


async def test_what_cannot_be_had_is_said_and_leaves_nothing_behind(tmp_path: Path, up: Upstream) -> None:
    with pytest.raises(Misuse, match=f":{up.port}"):
        await made(tmp_path, up).start(up.port)
    (tmp_path / "sub").write_text("a file, not a folder")
    with pytest.raises(TapeError, match="cannot be written"):
        await made(tmp_path, up).start()
    wrong = Standing(tape=tmp_path / "x.tape", store=tmp_path / "store", environ={"OPENAI_BASE_URL": "what"})
    with pytest.raises(Misuse, match="OPENAI_BASE_URL"):
        await wrong.start()
    assert list(places({}, [tmp_path / "store"])) == []


async def test_a_store_that_cannot_be_written_is_no_reason_to_stop(tmp_path: Path, up: Upstream) -> None:
    (tmp_path / "store").write_text("a file, not a folder")
    standing = made(tmp_path, up)
    await standing.start()
    assert standing.lends
    await standing.close()


async def test_a_lent_port_reads_tls_with_the_authority_that_the_agent_trusts_already(tmp_path: Path) -> None:
    private = Private(tmp_path)

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(text="secret")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=private.server()).start()
    port = runner.addresses[0][1]
    environ = {"SSL_CERT_FILE": private.file}
    standing = Standing(tape=tmp_path / "x.tape", store=tmp_path / "store", environ=environ)
    await standing.start()
    trusted = ssl.create_default_context(cafile=standing.environment["SSL_CERT_FILE"])
    hub, watch = Hub(environ={}, stores=[tmp_path / "store"]), Watch()
    channel = await hub.standing()
    assert channel is not None
    with channel.bind(hub.line("r-1", chain(watch))):
        async with httpx.AsyncClient(
            proxy=standing.environment["HTTPS_PROXY"], verify=trusted, trust_env=False
        ) as client:
            assert (await client.get(f"https://127.0.0.1:{port}/x")).text == "secret"
    await hub.close()
    await standing.close()
    await runner.cleanup()
    assert watch.urls == [f"https://127.0.0.1:{port}/x"]
