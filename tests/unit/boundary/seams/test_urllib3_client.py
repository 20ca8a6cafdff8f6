"""The seam in urllib3: attempts, connections and the file it reads from. Clients against servers: tests/sdk."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
import requests
import urllib3

from flakestorm.boundary.seams import urllib3_client
from flakestorm.boundary.seams.urllib3_client import patches
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow
from flakestorm.errors import CallFailed, Misuse
from inprocess_support import Watcher, crossing
from upstream import HANG_UP, Canned, Upstream, sse, text


def answer(reply: Reply) -> Watcher:
    class Answer(Watcher):
        def __call__(self, call: Call) -> Flow:
            self.calls.append(call)
            return reply
            yield call

    return Answer()


def test_a_version_that_is_too_old_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urllib3_client.urllib3, "HTTPResponse", SimpleNamespace)
    with pytest.raises(Misuse, match=r"urllib3 .* is too old .* install urllib3 2\.2 or newer"):
        patches(urllib3)


def test_each_attempt_of_the_agent_s_own_retries_is_an_exchange(up: Upstream) -> None:
    up.reply("/x", text("busy", status=503), Canned((HANG_UP,)), text("at last"))
    watcher = Watcher()
    retries = urllib3.Retry(5, status_forcelist=[503], backoff_factor=0)
    with crossing(watcher), urllib3.PoolManager() as pool:
        assert pool.request("GET", f"{up.url}/x", retries=retries).data == b"at last"
    assert watcher.statuses == [503, 200]
    assert [type(failure).__name__ for failure in watcher.failures] == ["RemoteDisconnected"]
    assert up.count("/x") == 3


def test_an_injected_failure_meets_the_agent_s_own_retries(up: Upstream) -> None:
    failing = [CallFailed("reset", injected=True), CallFailed("refused", injected=True)]

    def flaky(call: Call) -> Flow:
        if failing:
            raise failing.pop()
        return (yield call)

    with crossing(flaky), urllib3.PoolManager() as pool:
        retries = urllib3.Retry(5, backoff_factor=0)
        assert pool.request("GET", f"{up.url}/x", retries=retries).json() == {"got": ""}
    assert up.count("/x") == 1


def test_a_blocking_pool_of_one_connection_never_runs_dry(up: Upstream) -> None:
    up.reply("/s", sse(["one", "two"]))
    made_up = answer(Reply(503, body=b"down"))
    with urllib3.HTTPConnectionPool("127.0.0.1", up.port, maxsize=1, block=True) as pool:
        for _ in range(3):
            with crossing(made_up):
                assert pool.request("GET", "/x", pool_timeout=5).status == 503
                streamed = pool.request("GET", "/x", pool_timeout=5, preload_content=False)
                streamed.close()
                streamed.release_conn()
            with crossing(Watcher()):
                assert pool.request("GET", "/x", pool_timeout=5).status == 200
                left = pool.request("GET", "/s", pool_timeout=5, preload_content=False)
                next(left.stream())
                left.close()
                left.release_conn()
        assert pool.num_connections <= 4  # kept alive where the reply was read to its end


def test_a_kept_connection_is_used_again(up: Upstream) -> None:
    with crossing(Watcher()), requests.Session() as session:
        for _ in range(3):
            assert session.get(f"{up.url}/x").json() == {"got": ""}
        assert up.connections == 1


@pytest.mark.parametrize("body", ["text", b"bytes", bytearray(b"array")])
def test_a_body_that_is_there_is_part_of_the_call(up: Upstream, body: str | bytes | bytearray) -> None:
    watcher = Watcher()
    with crossing(watcher), urllib3.PoolManager() as pool:
        pool.request("POST", f"{up.url}/x", body=body)
    assert watcher.calls[0].body == (body.encode() if isinstance(body, str) else bytes(body))
    assert watcher.calls[0].upload is None


def test_a_body_still_being_produced_is_not_read_by_the_seam(up: Upstream) -> None:
    watcher = Watcher()
    with crossing(watcher):
        assert requests.post(f"{up.url}/x", data=iter([b"one ", b"two"]), timeout=20).json() == {"got": "one two"}
        assert requests.post(f"{up.url}/x", data=io.BytesIO(b"file"), timeout=20).json() == {"got": "file"}
    assert [call.body for call in watcher.calls] == [b"", b""]
    assert all(call.upload is not None for call in watcher.calls)


def test_an_uploaded_body_may_be_replaced(up: Upstream) -> None:
    def swap(call: Call) -> Flow:
        return (yield replace(call, body=b"swapped", upload=None))

    with crossing(swap):
        assert requests.post(f"{up.url}/x", data=iter([b"one"]), timeout=20).json() == {"got": "swapped"}
    assert up.requests[0].headers["content-length"] == "7"


def test_cookies_reach_the_session(up: Upstream) -> None:
    with crossing(answer(Reply(200, (("Set-Cookie", "seen=yes; Path=/"),), b""))), requests.Session() as session:
        session.get(f"{up.url}/x")
        assert session.cookies.get_dict() == {"seen": "yes"}


def test_the_raw_file_reads_like_a_file(up: Upstream) -> None:
    with (
        crossing(answer(Reply(200, body=iter([b"", b"abc", b"", b"defg"])))),
        requests.get(f"{up.url}/x", stream=True, timeout=20) as reply,
    ):
        assert (reply.raw.read(2), reply.raw.read(3), reply.raw.read(99), reply.raw.read(1)) == (
            b"ab",
            b"cde",
            b"fg",
            b"",
        )


def test_lines_of_a_stream(up: Upstream) -> None:
    up.reply("/s", sse(["one", "two"]))
    with crossing(Watcher()), requests.get(f"{up.url}/s", stream=True, timeout=20) as reply:
        assert [line for line in reply.iter_lines() if line] == [b"data: one", b"data: two"]


def test_a_reply_without_a_body(up: Upstream) -> None:
    up.reply("/none", Canned((), 204))
    with crossing(Watcher()):
        assert requests.get(f"{up.url}/none", timeout=20).content == b""
        assert requests.head(f"{up.url}/x", timeout=20).headers["content-length"] == "11"


def test_pools_of_unix_sockets_are_left_alone() -> None:
    class UnixHTTPConnectionPool(urllib3.HTTPConnectionPool):
        pass

    assert urllib3_client._local(UnixHTTPConnectionPool("localhost"))
    assert not urllib3_client._local(urllib3.HTTPSConnectionPool("localhost"))


@pytest.mark.parametrize(
    ("pool", "origin"),
    [
        (urllib3.HTTPConnectionPool("api.test", 80), "http://api.test"),
        (urllib3.HTTPConnectionPool("api.test", 8080), "http://api.test:8080"),
        (urllib3.HTTPSConnectionPool("api.test"), "https://api.test"),
        (urllib3.HTTPConnectionPool("::1", 8080), "http://[::1]:8080"),
    ],
)
def test_the_absolute_url(pool: urllib3.HTTPConnectionPool, origin: str) -> None:
    assert urllib3_client._origin(pool) == origin
