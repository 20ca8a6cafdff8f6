from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from flakestorm.boundary.channel import SHIM, open_channel
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.session import Crossing
from flakestorm.core.pipeline import chain
from flakestorm.errors import Misuse


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    it = Gateway()
    await it.start()
    yield it
    await it.close()


async def test_the_environment(gateway: Gateway) -> None:
    channel = open_channel(gateway, {"OPENAI_BASE_URL": "http://up/v1"}, {"PYTHONPATH": "/a", "NO_PROXY": "*"})
    env, root = channel.env, f"http://127.0.0.1:{gateway.port}/r/{channel.token}"
    assert env["OPENAI_BASE_URL"] == f"{root}/p/openai/v1"
    assert env["FLAKESTORM_GATEWAY"] == root
    assert env["FLAKESTORM_RUN"] == channel.token
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        assert env[name] == f"http://x:{channel.token}@127.0.0.1:{gateway.port}"
    assert env["NO_PROXY"] == env["no_proxy"] == ""
    assert env["PYTHONPATH"] == os.pathsep.join((str(SHIM), "/a"))
    assert (SHIM / "sitecustomize.py").is_file()


async def test_the_agents_own_pythonpath_comes_before_the_callers(gateway: Gateway) -> None:
    for own, expected in (("/own", ["/own"]), ("", [])):
        env = open_channel(gateway, {"PYTHONPATH": own}, {"PYTHONPATH": "/callers"}).env
        assert env["PYTHONPATH"].split(os.pathsep) == [str(SHIM), *expected]


async def test_every_channel_has_a_token_of_its_own(gateway: Gateway) -> None:
    tokens = {open_channel(gateway, {}, {}).token for _ in range(5)}
    assert len(tokens) == 5
    assert all(len(token) >= 16 for token in tokens)


async def test_only_a_crossing_can_be_bound(gateway: Gateway) -> None:
    class Other:
        run = "r-1"

    channel = open_channel(gateway, {}, {})
    with pytest.raises(Misuse, match=r"Hub\.line"):
        channel.bind(Other())  # type: ignore[arg-type]
    with channel.bind(Crossing("r-1", chain())):
        pass
    with channel.bind(Crossing("r-2", chain())):
        pass


async def test_an_unusable_upstream_leaves_no_token_behind(gateway: Gateway) -> None:
    with pytest.raises(Misuse, match="OPENAI_BASE_URL"):
        open_channel(gateway, {"OPENAI_BASE_URL": "nonsense"}, {})
    assert gateway.passages == 0


async def test_mcp_servers_are_led_through_the_gateway(gateway: Gateway) -> None:
    env = {"FLAKESTORM_MCP_FAR": "https://mcp.test/mcp", "FLAKESTORM_MCP_NEAR": "npx server"}
    channel = open_channel(gateway, env, {})
    root = channel.env["FLAKESTORM_GATEWAY"]
    assert channel.env["FLAKESTORM_MCP_FAR"] == f"{root}/p/mcp-far/mcp"
    assert channel.env["FLAKESTORM_MCP_NEAR"].endswith(f" --gateway {root} --name near -- npx server")
