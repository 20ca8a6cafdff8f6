"""What the seam in httpx leaves alone, and what it knows of a request. Clients against servers: tests/sdk."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest

from flakestorm.boundary.seams import httpx_client
from flakestorm.boundary.seams.httpx_client import patches
from flakestorm.boundary.session import Crossing
from flakestorm.core.call import Call, Headers, Reply, Tap
from flakestorm.core.pipeline import Flow, Watching, chain
from inprocess_support import Watcher, crossing
from upstream import Upstream


@pytest.fixture(params=[httpx, httpx2], ids=lambda lib: lib.__name__)
def lib(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_the_transports_that_reach_a_network_are_held(lib: ModuleType) -> None:
    assert [(patch.owner, patch.name) for patch in patches(lib)] == [
        (lib.HTTPTransport, "handle_request"),
        (lib.AsyncHTTPTransport, "handle_async_request"),
    ]


def test_transports_that_reach_no_network_are_left_alone(lib: Any) -> None:
    watcher = Watcher()
    with (
        crossing(watcher),
        lib.Client(transport=lib.MockTransport(lambda request: lib.Response(200, text="mock"))) as client,
    ):
        assert client.get("http://mock.test/").text == "mock"
    assert watcher.calls == []


async def test_asgi_apps_are_left_alone(lib: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"app"})

    watcher = Watcher()
    with crossing(watcher):
        async with lib.AsyncClient(transport=lib.ASGITransport(app=app)) as client:
            assert (await client.get("http://app.test/")).text == "app"
    assert watcher.calls == []


def test_unix_sockets_are_left_alone(lib: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nunix")

        server = threading.Thread(target=serve)
        server.start()
        watcher = Watcher()
        with crossing(watcher), lib.Client(transport=lib.HTTPTransport(uds=path)) as client:
            assert client.get("http://local.test/").text == "unix"
        server.join()
    assert watcher.calls == []


def test_a_body_still_being_produced_is_not_read_by_the_seam(lib: Any, up: Upstream) -> None:
    def produce() -> Iterator[bytes]:
        yield b"one "
        yield b"two"

    watcher = Watcher()
    with crossing(watcher), lib.Client(verify=False) as client:
        assert client.post(f"{up.url}/x", content=produce()).json() == {"got": "one two"}
    assert watcher.calls[0].body == b""
    assert watcher.calls[0].upload is not None


async def test_the_same_for_asyncio(lib: Any, up: Upstream) -> None:
    async def produce() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    watcher = Watcher()
    with crossing(watcher):
        async with lib.AsyncClient(verify=False) as client:
            assert (await client.post(f"{up.url}/x", content=produce())).json() == {"got": "one two"}
    assert watcher.calls[0].upload is not None


def test_the_agent_s_request_is_left_as_it_was(lib: Any, up: Upstream) -> None:
    with crossing(Watcher()), lib.Client(verify=False) as client:
        reply = client.post(f"{up.url}/x", content=b"q")
    assert reply.request.headers["accept-encoding"] != "identity"
    assert up.requests[0].headers["accept-encoding"] == "identity"


def test_a_made_up_reply_has_a_reason(lib: Any) -> None:
    def outage(call: Call) -> Flow:
        return Reply(503)
        yield call

    with crossing(outage), lib.Client(verify=False) as client:
        reply = client.get("http://agents.invalid/")
        assert (reply.reason_phrase, reply.http_version) == ("Service Unavailable", "HTTP/1.1")
        with pytest.raises(lib.HTTPStatusError, match="503 Service Unavailable"):
            reply.raise_for_status()


def test_a_subclass_of_the_transport_crosses_once(lib: Any, up: Upstream) -> None:
    class Counting(lib.HTTPTransport):  # type: ignore[misc,name-defined]  # the library is a parameter
        def handle_request(self, request: Any) -> Any:
            return super().handle_request(request)

    watcher = Watcher()
    with crossing(watcher), lib.Client(transport=Counting(verify=False)) as client:
        client.get(f"{up.url}/x")
    assert len(watcher.calls) == 1


def test_what_is_kept_in_mind_of_addresses_is_the_runs_own_and_bounded(lib: Any) -> None:
    run = Crossing("r", chain())
    for text in (
        "http://x.test/v1?key=sk-1",
        "http://ann:sk-1@x.test/v1",
        "http://x.test:81/v1/%C3%A5",
        "http://x.test",
    ):
        place = httpx_client._place(lib.URL(text), run)
        assert httpx_client._place(lib.URL(text), run) is place
        assert place.address == str(lib.URL(text))
    assert not Crossing("s", chain()).places
    for n in range(600):
        httpx_client._place(lib.URL(f"http://x.test/{n}"), run)
    assert len(run.places) <= 256


class Passed(Watching, Tap):
    """Lets a call pass and only watches: as the recorder does where no fault stands."""

    __slots__ = ()

    def watched(self, status: int, headers: Headers, reason: str) -> Tap:
        return self


def test_a_request_of_another_make_is_sent_as_it_is_but_uncompressed(lib: Any, up: Upstream) -> None:
    class Own(lib.Request):  # type: ignore[misc,name-defined]  # the library is a parameter
        pass

    with crossing(Passed), lib.Client(verify=False) as client:
        plain = client.build_request("POST", f"{up.url}/x", content=b"hi", headers={"Accept-Encoding": "gzip"})
        other = Own("POST", f"{up.url}/x", content=b"hi", headers={"Accept-Encoding": "gzip", "accept-encoding": "br"})
        other.extensions = plain.extensions
        for request in (plain, other):
            assert client.send(request).status_code == 200
    assert [(seen.body, seen.headers["accept-encoding"]) for seen in up.requests] == [(b"hi", "identity")] * 2
    assert plain.headers["accept-encoding"] == "gzip"
