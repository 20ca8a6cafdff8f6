"""Tool faults under real HTTP clients: what each client is shown, and how often the server was really asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from flakestorm.config.model import Chaos, ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Interceptor, chain
from flakestorm.core.site import Sites
from flakestorm.faults.schedule import Schedule
from flakestorm.wire.classify import classify
from gateway_support import held, run_python
from inprocess_support import CLIENTS, Client, crossing
from upstream import Request, Upstream, document

TOLD = {"flight": "HAT170", "price": 120}
LOST = {"mode": "timeout_after_commit", "delay_ms": 30}
RESET = {"mode": "connection_reset"}

RESET_ERRORS: dict[str, type[BaseException]] = {
    "httpx": httpx.ReadError,
    "httpx-async": httpx.ReadError,
    "httpx2": httpx2.ReadError,
    "httpx2-async": httpx2.ReadError,
    "requests": requests.ConnectionError,
    "urllib3": urllib3.exceptions.ProtocolError,
    "aiohttp": aiohttp.ClientOSError,
}
TIMEOUT_ERRORS: dict[str, type[BaseException]] = {
    "httpx": httpx.ReadTimeout,
    "httpx-async": httpx.ReadTimeout,
    "httpx2": httpx2.ReadTimeout,
    "httpx2-async": httpx2.ReadTimeout,
    "requests": requests.ReadTimeout,
    "urllib3": urllib3.exceptions.ReadTimeoutError,
    "aiohttp": aiohttp.SocketTimeoutError,
}


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as upstream:
        upstream.reply("/pay", lambda _: document({**TOLD, "n": upstream.count("/pay")}))
        yield upstream


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.param
    return chosen


def staged(*faults: dict[str, Any]) -> tuple[Interceptor, Ledger]:
    ledger = Ledger()
    chaos = Chaos(tool_faults=[ToolFault(tool="pay", **fault) for fault in faults])
    stage = Schedule.of(chaos).stage(Choices(1), ledger)
    return chain(classify(tools=[("pay", "*/pay*")], sites=Sites()), stage), ledger


def fired(ledger: Ledger) -> list[tuple[str, str]]:
    return [(str(firing.site), firing.mode) for firing in ledger.fired]


def test_a_reset_connection_lets_nothing_through_and_is_the_clients_own_error(client: Client, up: Upstream) -> None:
    stage, ledger = staged(RESET)
    with crossing(stage), pytest.raises(RESET_ERRORS[client.name]) as error:
        client.post(f"{up.url}/pay", b"{}")
    assert "timed out" not in str(error.value).lower()
    assert up.count("/pay") == 0
    assert fired(ledger) == [("tool/pay#1", "connection_reset")]


def test_a_lost_reply_was_given_once_and_is_the_clients_own_time_out(client: Client, up: Upstream) -> None:
    stage, ledger = staged(LOST)
    with crossing(stage), pytest.raises(TIMEOUT_ERRORS[client.name]):
        client.post(f"{up.url}/pay", b"{}")
    assert up.count("/pay") == 1
    assert fired(ledger) == [("tool/pay#1", "timeout_after_commit")]


def test_an_impatient_client_waits_no_longer_than_it_would(client: Client, up: Upstream) -> None:
    stage, _ = staged({"mode": "timeout_after_commit", "delay_ms": 3_600_000})
    with crossing(stage), pytest.raises(TIMEOUT_ERRORS[client.name]):
        client.post(f"{up.url}/pay", b"{}", 0.2)
    assert up.count("/pay") == 1


def test_a_duplicate_is_delivered_twice_and_the_first_reply_is_seen(client: Client, up: Upstream) -> None:
    stage, ledger = staged({"mode": "duplicate"})
    with crossing(stage):
        status, _, body = client.post(f"{up.url}/pay", b'{"order": 7}')
        again = client.post(f"{up.url}/pay", b'{"order": 8}')[2]
    assert (status, json.loads(body)["n"], json.loads(again)["n"]) == (200, 1, 3)
    assert [request.body for request in up.requests] == [b'{"order": 7}'] * 2 + [b'{"order": 8}'] * 2
    assert fired(ledger) == [("tool/pay#1", "duplicate"), ("tool/pay#2", "duplicate")]


def test_a_flapping_tool_comes_and_goes(client: Client, up: Upstream) -> None:
    stage, ledger = staged({"mode": "flap", "error_code": 502})
    with crossing(stage):
        statuses = [client.post(f"{up.url}/pay", b"{}")[0] for _ in range(4)]
    assert statuses == [502, 200, 502, 200]
    assert up.count("/pay") == 2
    assert fired(ledger) == [("tool/pay#1", "flap"), ("tool/pay#3", "flap")]


@pytest.mark.parametrize("mode", ["wrong_value", "drop_fields", "empty"])
def test_a_lie_is_valid_json_and_not_what_the_server_said(client: Client, up: Upstream, mode: str) -> None:
    stage, ledger = staged({"mode": mode})
    with crossing(stage):
        status, headers, body = client.post(f"{up.url}/pay", b"{}")
    told = json.loads(body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert told != {**TOLD, "n": 1}
    assert set(told) == ({*TOLD, "n"} if mode == "wrong_value" else set(told) & {*TOLD, "n"})
    assert up.count("/pay") == 1
    assert fired(ledger) == [("tool/pay#1", mode)]


def test_a_fault_for_mcp_does_nothing_here_and_says_why(client: Client, up: Upstream) -> None:
    stage, ledger = staged({"mode": "session_lost"}, {"mode": "tool_poisoning"})
    with crossing(stage):
        assert client.post(f"{up.url}/pay", b"{}")[0] == 200
    assert ledger.fired == []
    assert {firing.detail for firing in ledger.idle} == {"it is for tools of MCP servers, and pay is not called by MCP"}


# Each program POSTs to the URL in argv[1] with a read time-out of argv[2] seconds and prints the reply, or the name of
# the exception.
PROGRAMS = {
    "httpx": """
import sys, httpx
try:
    print(httpx.post(sys.argv[1], content=b"{}", timeout=float(sys.argv[2])).text)
except httpx.HTTPError as error:
    print(type(error).__name__)
""",
    "requests": """
import sys, requests
try:
    print(requests.post(sys.argv[1], data=b"{}", timeout=(3, float(sys.argv[2]))).text)
except requests.RequestException as error:
    print(type(error).__name__)
""",
    "aiohttp": """
import asyncio, sys, aiohttp
async def main():
    timeout = aiohttp.ClientTimeout(sock_read=float(sys.argv[2]))
    async with aiohttp.ClientSession(timeout=timeout) as session, session.post(sys.argv[1], data=b"{}") as reply:
        print(await reply.text())
try:
    asyncio.run(main())
except aiohttp.ClientError as error:
    print(type(error).__name__)
""",
}
SHOWN = {
    "connection_reset": {"httpx": "ReadError", "requests": "ConnectionError", "aiohttp": "ClientOSError"},
    "timeout_after_commit": {"httpx": "ReadTimeout", "requests": "ReadTimeout", "aiohttp": "SocketTimeoutError"},
}
ASKED = {"connection_reset": 0, "timeout_after_commit": 1, "duplicate": 2, "wrong_value": 1, "flap": 0}


@pytest.mark.parametrize("mode", ASKED)
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_launched_program_with_a_hard_coded_url_sees_the_same(up: Upstream, name: str, mode: str) -> None:
    settings = {"delay_ms": 30} if mode == "timeout_after_commit" else {}
    stage, ledger = staged({"mode": mode, **settings})

    async with held(stage) as gate:
        said = (await run_python(gate, PROGRAMS[name], f"{up.url}/pay", "30")).strip()

    assert up.count("/pay") == ASKED[mode]
    assert fired(ledger) == [("tool/pay#1", mode)]
    if mode in SHOWN:
        assert said == SHOWN[mode][name]
    elif mode == "duplicate":
        assert json.loads(said)["n"] == 1
    elif mode == "flap":
        assert json.loads(said) == {"error": "Service Unavailable"}
    else:
        assert json.loads(said).keys() == {*TOLD, "n"}
        assert json.loads(said) != {**TOLD, "n": 1}


FOREIGN = """
import http.client, sys
from urllib.parse import urlsplit
proxy, url = urlsplit(sys.argv[1]), sys.argv[2]
import base64
token = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
try:
    connection.request("POST", url, b"{}", {"Proxy-Authorization": f"Basic {token}"})
    reply = connection.getresponse()
    print(reply.status, len(reply.read()) > 0)
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("mode", "shown", "asked"),
    [
        ("connection_reset", "ConnectionResetError", 0),
        ("timeout_after_commit", "504 True", 1),
        ("duplicate", "200 True", 2),
        ("empty", "200 True", 1),
    ],
)
async def test_at_the_gateway_a_client_that_nobody_knows_is_served_too(
    up: Upstream, mode: str, shown: str, asked: int
) -> None:
    settings = {"delay_ms": 30} if mode == "timeout_after_commit" else {}
    stage, ledger = staged({"mode": mode, **settings})

    async with held(stage) as gate:
        proxy = gate.channel.env["HTTP_PROXY"]
        said = await run_python(gate, FOREIGN, proxy, f"{up.url}/pay", PYTHONPATH="")

    assert said.strip() == shown
    assert up.count("/pay") == asked
    assert fired(ledger) == [("tool/pay#1", mode)]


def test_a_server_that_knows_a_copy_by_its_key_is_not_seen_refusing_it(up: Upstream) -> None:
    keys: list[str] = []

    def once(request: Request) -> Any:
        key = request.headers["idempotency-key"]
        known = key in keys
        keys.append(key)
        return document({"paid": not known}, status=409 if known else 201)

    up.reply("/pay", once)
    stage, _ = staged({"mode": "duplicate"})
    with crossing(stage):
        reply = httpx.post(f"{up.url}/pay", json={}, headers={"Idempotency-Key": "k"})
    assert (reply.status_code, keys) == (201, ["k", "k"])
