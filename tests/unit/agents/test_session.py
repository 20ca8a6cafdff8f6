"""The client flakestorm asks agents with."""

import pytest
from aiohttp import web

from agents_support import serving
from flakestorm.agents.session import new_session
from flakestorm.version import __version__


async def test_it_goes_straight_to_the_agent_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[web.BaseRequest] = []
    peers: set[object] = set()

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append(request)
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        reply = web.Response()
        reply.set_cookie("a", "b")
        return reply

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serving(handler) as url, new_session() as session:
        for _ in range(2):
            async with session.get(url) as reply:
                assert reply.status == 200
    assert [request.cookies for request in seen] == [{}, {}]
    assert seen[0].headers["User-Agent"] == f"flakestorm/{__version__}"
    assert len(peers) == 2, "a connection was kept alive"
