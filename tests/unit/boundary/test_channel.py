from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flakestorm.boundary.channel import SHIM, open_channel
from flakestorm.boundary.gateway import Gateway
from flakestorm.boundary.intercept import interception
from flakestorm.boundary.session import Crossing
from flakestorm.core.pipeline import chain
from flakestorm.errors import Misuse
from tls_support import Private


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
    assert env["NODE_USE_ENV_PROXY"] == "1"
    assert env["PYTHONPATH"] == os.pathsep.join((str(SHIM), "/a"))
    assert (SHIM / "sitecustomize.py").is_file()
    assert "FLAKESTORM_DRAWS" not in env
    assert Path(env["FLAKESTORM_LANES"]).is_file()
    await gateway.close()
    assert not Path(env["FLAKESTORM_LANES"]).exists()


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
    assert f" FLAKESTORM_GATEWAY={root} " in channel.env["FLAKESTORM_MCP_NEAR"]
    assert channel.env["FLAKESTORM_MCP_NEAR"].endswith(" --name near -- npx server")


async def test_what_the_variables_said_before_is_how_the_gateway_goes_on(gateway: Gateway) -> None:
    caller = {
        "HTTPS_PROXY": "http://corp:3128",
        "NO_PROXY": "in.corp",
        "ALL_PROXY": "http://all",
        "SSL_CERT_FILE": "/c",
    }
    channel = open_channel(gateway, {"SSL_CERT_FILE": "/own"}, caller)
    outward = channel._passage.outward
    assert (outward.proxies.http, outward.proxies.https) == ("http://all", "http://corp:3128")
    assert outward.proxies.exempt == "in.corp"
    assert outward.trust.places == ("/own",)
    assert (
        channel.env["ALL_PROXY"]
        == channel.env["all_proxy"]
        == channel.env["HTTPS_PROXY"]
        == gateway.proxy(channel._passage)
    )
    assert "SSL_CERT_FILE" not in channel.env  # nothing is intercepted, so nobody else is to be trusted
    assert "ALL_PROXY" not in open_channel(gateway, {}, {}).env


async def test_where_tls_is_intercepted_the_agent_is_told_whom_to_trust(tmp_path: Path) -> None:
    private = Private(tmp_path)
    gateway = Gateway(interception=interception())
    await gateway.start()
    try:
        env = open_channel(gateway, {}, {"REQUESTS_CA_BUNDLE": private.file}).env
        bundles = {
            env[name] for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
        }
        (bundle,) = bundles
        assert private.pem in Path(bundle).read_text()
    finally:
        await gateway.close()
    assert not Path(bundle).exists()
