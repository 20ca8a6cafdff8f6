"""Resetting: what is called, what a failure says, and who has to wait."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents_support import config, serving
from flakestorm.agents.ready import free_port
from flakestorm.agents.reset import Reset
from flakestorm.errors import AgentUnreachable, ConfigError


def reset(folder: Path, **agent: Any) -> Reset:
    return Reset(config(folder, endpoint="http://a/", **agent).agent, folder)


async def call(folder: Path, *, base: str = "", port: int | None = None, **agent: Any) -> str | None:
    made = reset(folder, **agent)
    try:
        await made.start()
        return await made(base=base, port=port)
    finally:
        await made.close()


async def test_without_any_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert await call(tmp_path) is None


@pytest.mark.parametrize("where", ["{url}/reset", "/reset", "http://127.0.0.1:{port}/reset"])
async def test_the_endpoint_is_posted_to(tmp_path: Path, where: str) -> None:
    seen: list[tuple[str, str, str]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, request.path, request.headers["X-Key"]))
        return web.Response(status=204)

    async with serving(handler) as url:
        port = int(url.rpartition(":")[2])
        where = where.replace("{url}", url)
        assert await call(tmp_path, base=f"{url}/ask", port=port, reset_endpoint=where, headers={"X-Key": "k"}) is None
    assert seen == [("POST", "/reset", "k")]


async def test_a_refusing_endpoint_is_a_failure(tmp_path: Path) -> None:
    port = free_port()
    said = await call(tmp_path, reset_endpoint=f"http://127.0.0.1:{port}/reset")
    assert said is not None
    assert said.startswith(f"reset failed: POST http://127.0.0.1:{port}/reset: ")


async def test_an_endpoint_that_never_answers_is_a_failure(tmp_path: Path) -> None:
    async def never(request: web.BaseRequest) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(never) as url:
        assert await call(tmp_path, reset_endpoint=url, timeout=50) == "reset failed: it took longer than 50 ms"


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_the_function_is_called(tmp_path: Path, kind: str) -> None:
    (tmp_path / "reset_it.py").write_text(
        f"from pathlib import Path\n{kind} go(): Path({str(tmp_path)!r}, 'done').touch()"
    )
    assert await call(tmp_path, reset_function="reset_it:go") is None
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reset_it:no", "there is no 'no'"),
        ("reset_it:x", "is int, not a function"),
        ("nowhere:x", "cannot be imported"),
    ],
)
async def test_a_function_that_is_not_there_is_said_before_any_run(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "reset_it.py").write_text("x = 1")
    with pytest.raises(ConfigError, match=rf"agent\.reset_function: .*{said}"):
        await call(tmp_path, reset_function=name)


async def test_a_module_whose_own_code_fails_is_not_the_configs_fault(tmp_path: Path) -> None:
    (tmp_path / "reset_broken.py").write_text("import no_such_library")
    with pytest.raises(AgentUnreachable, match=r"agent\.reset_function: .*No module named 'no_such_library'"):
        await call(tmp_path, reset_function="reset_broken:go")


def test_runs_that_share_what_is_reset_take_turns(tmp_path: Path) -> None:
    def free(*, instances: bool, **agent: Any) -> bool:
        return isinstance(reset(tmp_path, **agent).turn(instances=instances), nullcontext)

    assert free(instances=False)
    assert free(instances=True)
    assert not free(instances=False, reset_endpoint="/reset")
    assert free(instances=True, reset_endpoint="/reset")
    assert free(instances=True, reset_endpoint="http://127.0.0.1:{port}/reset")
    assert not free(instances=True, reset_endpoint="http://127.0.0.1:9/store/reset")
    assert not free(instances=True, reset_function="a:b")


@pytest.mark.parametrize(
    ("kind", "endpoint", "right"),
    [
        ({"type": "command", "start": "cat"}, "/reset", False),
        ({"type": "python", "endpoint": "a:b"}, "reset", False),
        ({"type": "python", "endpoint": "a:b"}, "http://127.0.0.1:9/reset", True),
        ({"endpoint": "http://127.0.0.1:{port}/ask", "start": "x"}, "/reset", True),
        ({"endpoint": "http://127.0.0.1:{port}/ask", "start": "x"}, "http://127.0.0.1:{port}/reset", True),
        ({"endpoint": "http://127.0.0.1:9/ask"}, "ftp://127.0.0.1/reset", False),
    ],
)
def test_an_endpoint_that_is_no_place_is_said_before_any_run(
    tmp_path: Path, kind: dict[str, Any], endpoint: str, right: bool
) -> None:
    agent = config(tmp_path, **kind, reset_endpoint=endpoint).agent
    if right:
        Reset(agent, tmp_path)
        return
    with pytest.raises(ConfigError, match=r"^agent\.reset_endpoint: .* is not an HTTP URL"):
        Reset(agent, tmp_path)
