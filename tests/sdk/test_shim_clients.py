"""Hard-coded URLs in launched Python programs: the shim leads them to the gateway, and nobody notices."""

from __future__ import annotations

import json
import textwrap
from collections.abc import AsyncIterator, Iterator

import pytest

from flakestorm.core.call import Call, Reply, Sleep, header
from flakestorm.core.pipeline import Flow
from flakestorm.errors import CallFailed
from gateway_support import Held, held, run_python
from upstream import Canned, Upstream, document, redirect


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as upstream:
        upstream.reply("/hello", lambda request: document({"you": request.method, "body": request.body.decode()}))
        yield upstream


@pytest.fixture
async def gate() -> AsyncIterator[Held]:
    async with held() as it:
        yield it


# Each program POSTs BODY to the URL in argv[1] with a read time-out of argv[2] seconds, prints the final URL and the
# reply, or the name of the exception.
HTTPX = """
import sys, LIB
try:
    with LIB.Client(follow_redirects=True, timeout=float(sys.argv[2])) as client:
        reply = client.post(sys.argv[1], content=b"BODY")
    print(reply.url, reply.text)
except LIB.HTTPError as error:
    print(type(error).__name__)
"""
HTTPX_ASYNC = """
import asyncio, sys, LIB
async def main():
    async with LIB.AsyncClient(follow_redirects=True, timeout=float(sys.argv[2])) as client:
        reply = await client.post(sys.argv[1], content=b"BODY")
    print(reply.url, reply.text)
try:
    asyncio.run(main())
except LIB.HTTPError as error:
    print(type(error).__name__)
"""
REQUESTS = """
import sys, requests
try:
    reply = requests.post(sys.argv[1], data=b"BODY", timeout=(3, float(sys.argv[2])))
    print(reply.url, reply.text)
except requests.RequestException as error:
    print(type(error).__name__)
"""
URLLIB3 = """
import sys, urllib3
with urllib3.PoolManager() as pool:
    try:
        reply = pool.request(
            "POST", sys.argv[1], body=b"BODY", timeout=urllib3.Timeout(connect=3, read=float(sys.argv[2])), retries=0)
        print(sys.argv[1], reply.data.decode())
    except urllib3.exceptions.HTTPError as error:
        print(type(getattr(error, "reason", error)).__name__)
"""
URLLIB = """
import sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], data=b"BODY", timeout=float(sys.argv[2])) as reply:
        print(reply.url, reply.read().decode())
except OSError as error:
    print(type(error).__name__)
"""
AIOHTTP = """
import asyncio, sys, aiohttp
async def main():
    timeout = aiohttp.ClientTimeout(sock_read=float(sys.argv[2]))
    async with aiohttp.ClientSession(timeout=timeout) as session, session.post(sys.argv[1], data=b"BODY") as reply:
        print(reply.url, await reply.text())
try:
    asyncio.run(main())
except aiohttp.ClientError as error:
    print(type(error).__name__)
"""
PROGRAMS = {
    "httpx": HTTPX.replace("LIB", "httpx"),
    "httpx-async": HTTPX_ASYNC.replace("LIB", "httpx"),
    "httpx2": HTTPX.replace("LIB", "httpx2"),
    "httpx2-async": HTTPX_ASYNC.replace("LIB", "httpx2"),
    "requests": REQUESTS,
    "urllib3": URLLIB3,
    "urllib": URLLIB,
    "aiohttp": AIOHTTP,
    "aiohttp-env": AIOHTTP.replace("ClientSession(", "ClientSession(trust_env=True, "),
}
EXCEPTIONS = {
    "httpx": {"timeout": "ReadTimeout", "refused": "ConnectError", "reset": "ReadError"},
    "requests": {"timeout": "ReadTimeout", "refused": "ConnectionError", "reset": "ConnectionError"},
    "urllib3": {"timeout": "ReadTimeoutError", "refused": "NewConnectionError", "reset": "ProtocolError"},
    "urllib": {"timeout": "TimeoutError", "refused": "URLError", "reset": "ConnectionResetError"},
    "aiohttp": {"timeout": "SocketTimeoutError", "refused": "ClientConnectorError", "reset": "ClientOSError"},
}
EXCEPTIONS["aiohttp-env"] = EXCEPTIONS["aiohttp"]
EXCEPTIONS |= dict.fromkeys(("httpx-async", "httpx2", "httpx2-async"), EXCEPTIONS["httpx"])


@pytest.mark.parametrize("by_proxy", [False, True], ids=["shim", "shim-and-proxy"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_hard_coded_url_crosses_once(gate: Held, up: Upstream, name: str, by_proxy: bool) -> None:
    url = f"{up.url}/hello?a=x%26y&b=1"
    proxies = {} if by_proxy else dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), "")

    said = await run_python(gate, PROGRAMS[name], url, "30", **proxies)

    assert said.split(" ", 1)[0] == url
    assert json.loads(said.split(" ", 1)[1]) == {"you": "POST", "body": "BODY"}
    assert gate.watch.urls == [url]
    assert gate.watch.seen[0].call.body == b"BODY"
    assert gate.watch.seen[0].call.patience_s == pytest.approx(30) or by_proxy
    assert header(gate.watch.seen[0].call.headers, "host") == f"127.0.0.1:{up.port}"
    assert up.count() == 1
    assert not [name for name in up.requests[0].headers if name.startswith(("x-flakestorm", "proxy-"))]


@pytest.mark.parametrize("name", PROGRAMS)
async def test_https_is_led_to_the_gateway_in_the_clear(name: str) -> None:
    """The upstream is asked by the gateway, so the program's TLS never starts; a stage answers in its place."""

    def answer(call: Call) -> Flow:
        return Reply(200, (("Content-Type", "text/plain"),), call.url.encode())
        yield

    url = "https://api.example.com/v1/things?q=1"
    async with held(answer) as gate:
        for proxies in ({}, dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), "")):
            said = await run_python(gate, PROGRAMS[name], url, "30", **proxies)
            assert said.split() == [url, url]


@pytest.mark.parametrize("how", ["timeout", "refused", "reset"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_broken_call_is_the_librarys_own_exception(up: Upstream, name: str, how: str) -> None:
    def broken(_: Call) -> Flow:
        raise CallFailed(how, "broken on purpose", injected=True)  # type: ignore[arg-type]
        yield

    async with held(broken) as gate:
        said = await run_python(gate, PROGRAMS[name], f"{up.url}/hello", "30")

    assert said.strip() == EXCEPTIONS[name][how]
    assert up.count() == 0


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_sleep_ends_with_the_clients_own_patience(up: Upstream, name: str) -> None:
    def slow(call: Call) -> Flow:
        yield Sleep(3600)
        return (yield call)  # type: ignore[return-value]

    async with held(slow) as gate:
        said = await run_python(gate, PROGRAMS[name], f"{up.url}/hello", "0.2")

    assert said.strip() == EXCEPTIONS[name]["timeout"]
    assert up.count() == 0


@pytest.mark.parametrize("name", PROGRAMS)
async def test_redirects_and_cookies_see_the_original_url(gate: Held, up: Upstream, name: str) -> None:
    if name == "urllib3":
        pytest.skip("urllib3 has no cookies, and its reply does not say where it came from")
    moved = redirect("/hello", status=303)
    up.reply("/start", Canned(moved.pieces, moved.status, (*moved.headers, ("Set-Cookie", "a=1; Path=/hello"))))
    jar = {"urllib": "urllib.request.install_opener(urllib.request.build_opener("
           "urllib.request.HTTPCookieProcessor()))"}.get(name, "")  # fmt: skip
    unsafe = PROGRAMS[name].replace("ClientSession(", "ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), ")
    code = unsafe.replace("urllib.error, urllib.request\n", f"urllib.error, urllib.request\n{jar}\n")

    said = await run_python(gate, code, f"{up.url}/start", "30")

    assert said.split(" ", 1)[0] == f"{up.url}/hello"
    assert gate.watch.urls == [f"{up.url}/start", f"{up.url}/hello"]
    assert up.requests[1].method == "GET"
    assert up.requests[1].headers["cookie"] == "a=1"


STREAMS = {
    "httpx": """
        import sys, httpx
        with httpx.stream("GET", sys.argv[1]) as reply:
            for chunk in reply.iter_bytes():
                ack(chunk)
    """,
    "requests": """
        import sys, requests
        with requests.get(sys.argv[1], stream=True) as reply:
            for chunk in reply.iter_content(None):
                ack(chunk)
    """,
    "aiohttp": """
        import asyncio, sys, aiohttp
        async def main():
            async with aiohttp.ClientSession() as session, session.get(sys.argv[1]) as reply:
                async for chunk in reply.content.iter_any():
                    await asyncio.to_thread(ack, chunk)
        asyncio.run(main())
    """,
}
ACK = """
import http.client, sys
def ack(chunk):
    host, _, port = sys.argv[2].partition(":")
    print(chunk.decode(), flush=True)
    connection = http.client.HTTPConnection(host, int(port))
    connection.request("POST", "/ack", chunk)
    connection.getresponse().read()
    connection.close()
"""


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_is_not_held_back(gate: Held, up: Upstream, name: str) -> None:
    """The second chunk is sent only after the agent has acknowledged the first."""
    from upstream import Gate, text

    shut = Gate()

    def acknowledged(request: object) -> Canned:
        shut.open()
        return text("ok")

    up.reply("/ack", acknowledged)
    up.reply("/stream", Canned((b"one", shut, b"two"), 200, (("Content-Type", "text/event-stream"),), chunked=True))

    said = await run_python(gate, ACK + textwrap.dedent(STREAMS[name]), f"{up.url}/stream", f"127.0.0.1:{up.port}")

    assert said.split() == ["one", "two"]
    assert gate.watch.seen[0].chunks == [b"one", b"two"]
