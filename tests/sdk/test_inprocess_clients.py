"""The in-process seams under every HTTP library they hold, against a real server on loopback."""

from __future__ import annotations

import gc
import gzip
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from flakestorm.boundary.session import outside
from flakestorm.core.call import PULL, Call, Chunks, Reply, Sleep, with_header
from flakestorm.core.pipeline import Flow
from flakestorm.errors import CallFailed
from inprocess_support import CLIENTS, Client, Watcher, crossing
from upstream import RESET, Canned, Gate, Upstream, document, redirect, sse, text


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.param
    return chosen


def test_an_untouched_call_crosses_once_and_looks_the_same(client: Client, up: Upstream) -> None:
    up.reply("/search", document({"hits": 3}, headers={"X-Odd": "caf\xe9"}))
    bare = client.post(f"{up.url}/search?q=oslo", b'{"q": 1}')

    watcher = Watcher()
    with crossing(watcher):
        crossed = client.post(f"{up.url}/search?q=oslo", b'{"q": 1}')

    assert _without_date(crossed) == _without_date(bare)
    assert [(c.method, c.url, c.body) for c in watcher.calls] == [("POST", f"{up.url}/search?q=oslo", b'{"q": 1}')]
    assert (watcher.statuses, watcher.bodies, watcher.ends) == ([200], [b'{"hits": 3}'], ["eof"])
    assert up.count("/search") == 2


def test_a_url_s_fragment_is_never_sent_and_no_part_of_the_call(client: Client, up: Upstream) -> None:
    up.reply("/v1/chat/completions", text("x"))
    watcher = Watcher()
    with crossing(watcher):
        client.post(f"{up.url}/v1/chat/completions?q=1#stream", b"{}")
    assert [call.url for call in watcher.calls] == [f"{up.url}/v1/chat/completions?q=1"]
    assert [(request.path, request.query) for request in up.requests] == [("/v1/chat/completions", {"q": ["1"]})]


def test_the_client_s_read_time_out_is_known(client: Client, up: Upstream) -> None:
    up.reply("/x", text("x"))
    watcher = Watcher()
    with crossing(watcher):
        client.get(f"{up.url}/x", 17.0)
    assert watcher.calls[0].patience_s == 17.0


def test_upstream_is_asked_not_to_compress_while_the_call_shows_what_the_agent_asked(
    client: Client, up: Upstream
) -> None:
    up.reply("/x", text("x"))
    watcher = Watcher()
    with crossing(watcher):
        client.get(f"{up.url}/x")
    client.get(f"{up.url}/x")
    crossed, bare = up.requests
    assert crossed.headers["accept-encoding"] == "identity"
    assert bare.headers.get("accept-encoding") != "identity" or client.name == "urllib3"
    seen = {name.lower(): value for name, value in watcher.calls[0].headers}
    assert seen.get("accept-encoding") == (None if client.name == "urllib3" else bare.headers["accept-encoding"])


def test_a_body_that_is_compressed_all_the_same_is_decoded_by_the_client(client: Client, up: Upstream) -> None:
    packed = gzip.compress(b'{"hits": 3}')
    up.reply("/x", Canned((packed,), 200, (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))))
    with crossing(Watcher()):
        _, headers, body = client.get(f"{up.url}/x")
    assert (headers["content-encoding"], body) == ("gzip", b'{"hits": 3}')


def test_a_compressed_reply_made_by_a_stage_is_decoded_too(client: Client, up: Upstream) -> None:
    with crossing(_answer(Reply(200, (("Content-Encoding", "gzip"),), gzip.compress(b"hello")))):
        assert client.get(f"{up.url}/x")[2] == b"hello"


def test_an_answer_made_by_a_stage_lets_nothing_through(client: Client, up: Upstream) -> None:
    body = b'{"error": "down"}'
    headers = (("content-type", "application/json"), ("content-length", str(len(body))), ("x-why", "chaos"))
    with crossing(_answer(Reply(503, headers, body))):
        status, seen, got = client.get(f"{up.url}/search")
    assert (status, seen["x-why"], got) == (503, "chaos", body)
    assert up.requests == []


def test_a_changed_request_is_what_upstream_gets(client: Client, up: Upstream) -> None:
    up.reply("/other", text("ok"))

    def change(call: Call) -> Flow:
        url = call.url.replace("/search", "/other")
        return (yield replace(call, url=url, body=b"much longer than before", headers=_marked(call)))

    with crossing(change):
        client.post(f"{up.url}/search", b"short")
    assert [(r.path, r.body, r.headers["x-mark"]) for r in up.requests] == [
        ("/other", b"much longer than before", "yes")
    ]


def test_a_request_may_be_sent_to_another_host(client: Client, up: Upstream) -> None:
    up.reply("/x", text("found"))

    def reroute(call: Call) -> Flow:
        return (yield replace(call, url=call.url.replace("agents.invalid", f"127.0.0.1:{up.port}")))

    with crossing(reroute):
        assert client.get("http://agents.invalid/x")[2] == b"found"
    assert up.requests[0].headers["host"] == f"127.0.0.1:{up.port}"


def test_a_changed_reply_is_what_the_agent_gets(client: Client, up: Upstream) -> None:
    up.reply("/x", text("cold"))

    def shout(call: Call) -> Flow:
        reply = yield call
        assert isinstance(reply, Reply)
        headers = with_header(reply.headers, "content-length", "8")
        return replace(reply, status=202, headers=with_header(headers, "x-new", "1")).pipe(_twice)

    with crossing(shout):
        status, headers, body = client.get(f"{up.url}/x")
    assert (status, headers["x-new"], body) == (202, "1", b"coldcold")


def test_every_redirect_hop_is_its_own_exchange(client: Client, up: Upstream) -> None:
    up.reply("/old", redirect("/new"))
    up.reply("/new", text("here"))
    watcher = Watcher()
    with crossing(watcher):
        assert client.get(f"{up.url}/old")[2] == b"here"
    assert [(c.url, s) for c, s in zip(watcher.calls, watcher.statuses, strict=True)] == [
        (f"{up.url}/old", 302),
        (f"{up.url}/new", 200),
    ]


def test_a_stream_is_not_delayed(client: Client, up: Upstream) -> None:
    gate = Gate()
    up.reply("/s", sse(["one", "two"], gates={1: gate}))
    pieces: list[bytes] = []

    def on_piece(piece: bytes) -> bool:
        pieces.append(piece)
        gate.open()  # the second event is only sent once the first has arrived
        return True

    watcher = Watcher()
    with crossing(watcher, _pass, _pass):
        client.stream(f"{up.url}/s", 20.0, on_piece)
    assert pieces == [b"data: one\n\n", b"data: two\n\n"]
    assert watcher.ends == ["eof"]


def test_a_stream_made_by_a_stage_arrives_piece_by_piece(client: Client, up: Upstream) -> None:
    made: list[int] = []

    def source() -> Iterator[bytes]:
        for n in range(3):
            made.append(n)
            yield b"data: %d\n\n" % n

    made_when: list[int] = []
    with crossing(_answer(Reply(200, (("content-type", "text/event-stream"),), source()))):
        client.stream(f"{up.url}/s", 20.0, lambda _: made_when.append(len(made)) is None)
    assert made_when == [1, 2, 3]


def test_leaving_a_stream_early_tells_the_stages_and_lets_the_connection_go(client: Client, up: Upstream) -> None:
    gate = Gate()
    up.reply("/s", sse(["one", "two"], gates={1: gate}))
    watcher = Watcher()
    with crossing(watcher):
        client.stream(f"{up.url}/s", 20.0, lambda _: False)
    assert (watcher.bodies, watcher.ends) == ([b"data: one\n\n"], ["client left"])
    gate.open()
    assert up.wait_connections(0)
    gc.collect()  # what was not closed would warn here, and warnings are errors


@pytest.mark.parametrize("how", ["timeout", "reset", "refused"])
def test_a_failed_call_is_spelled_as_the_library_spells_a_real_one(client: Client, up: Upstream, how: str) -> None:
    gate = Gate()
    up.reply("/timeout", Canned((b"late",)))
    up.reply("/reset", Canned((RESET,)))
    url = _closed_port() if how == "refused" else f"{up.url}/{how}"
    with _silent(up, "/timeout", gate):
        real = _failure(lambda: client.post(url, b"x", 0.2))
    sent = up.count()
    with crossing(_fail(CallFailed(how, injected=True))):  # type: ignore[arg-type]  # the parameters are its words
        injected = _failure(lambda: client.post(url, b"x", 0.2))
    assert type(injected) is type(real)
    assert up.count() == sent


@pytest.mark.parametrize("how", ["timeout", "reset"])
def test_a_stream_cut_in_the_middle_is_spelled_as_the_library_spells_a_real_one(
    client: Client, up: Upstream, how: str
) -> None:
    gate = Gate()
    up.reply("/timeout", Canned((b"one", gate, b"two"), chunked=True))
    up.reply("/reset", Canned((b"one", RESET), chunked=True))
    up.reply("/whole", Canned((b"one", b"two"), chunked=True))
    real = _failure(lambda: client.stream(f"{up.url}/{how}", 0.2, lambda _: True))
    gate.open()

    watcher = Watcher()
    pieces: list[bytes] = []
    with crossing(_cut(CallFailed(how, injected=True)), watcher):  # type: ignore[arg-type]
        injected = _failure(lambda: client.stream(f"{up.url}/whole", 0.2, lambda p: pieces.append(p) is None))
    assert type(injected) is type(real)
    assert pieces == [b"one"]
    assert watcher.ends == ["client left"]  # what lies further in is told that nobody reads on


def test_what_the_world_raises_passes_every_stage_and_reaches_the_agent(client: Client, up: Upstream) -> None:
    up.reply("/reset", Canned((RESET,)))
    up.reply("/mid", Canned((b"one", RESET), chunked=True))
    for path in ("/reset", "/mid"):
        bare = _failure(lambda path=path: client.post(f"{up.url}{path}", b"x"))
        watcher = Watcher()
        with crossing(watcher):
            crossed = _failure(lambda path=path: client.post(f"{up.url}{path}", b"x"))
        assert type(crossed) is type(bare)
        assert str(crossed) == str(bare)
        assert watcher.failures
        assert not any(isinstance(failure, CallFailed) for failure in watcher.failures)


def test_a_sleep_longer_than_the_client_waits_ends_in_its_own_time_out(client: Client, up: Upstream) -> None:
    up.reply("/x", text("x"))
    real = _real_timeout(client, up)

    def slow(call: Call) -> Flow:
        yield Sleep(3600)
        return (yield call)

    with crossing(slow):
        injected = _failure(lambda: client.get(f"{up.url}/x", 0.05))
    assert type(injected) is type(real)
    assert up.count("/x") == 0


def test_a_stream_slower_than_the_client_waits_ends_in_its_own_time_out(client: Client, up: Upstream) -> None:
    up.reply("/s", sse(["one", "two"]))
    pieces: list[bytes] = []

    def slow(call: Call) -> Flow:
        reply = yield call
        assert isinstance(reply, Reply)
        return reply.pipe(_dawdle)

    with crossing(slow):
        error = _failure(lambda: client.stream(f"{up.url}/s", 0.05, lambda p: pieces.append(p) is None))
    gate = Gate()
    up.reply("/held", sse(["one", "two"], gates={1: gate}))
    real = _failure(lambda: client.stream(f"{up.url}/held", 0.1, lambda _: True))
    gate.open()
    assert pieces == [b"data: one\n\n"]
    assert type(error) is type(real)


def test_a_stage_may_ask_twice_with_a_single_connection_to_spend(client: Client, up: Upstream) -> None:
    up.reply("/charge", document({"n": 1}), document({"n": 2}))

    def first_of_two(call: Call) -> Flow:
        first = yield call
        yield call
        assert isinstance(first, Reply)
        return first

    with crossing(first_of_two):
        assert json.loads(client.post(f"{up.url}/charge", b"{}")[2]) == {"n": 1}
    assert [r.body for r in up.requests] == [b"{}", b"{}"]


def test_a_reply_that_a_stage_throws_away_is_let_go_of(client: Client, up: Upstream) -> None:
    up.reply("/charge", sse(["one", "two"]))

    def lose_it(call: Call) -> Flow:
        yield call
        raise CallFailed("reset", injected=True)

    with crossing(lose_it):
        _failure(lambda: client.post(f"{up.url}/charge", b"{}"))
    assert up.count("/charge") == 1
    assert up.wait_connections(0)


def test_without_a_crossing_nothing_changes(client: Client, up: Upstream) -> None:
    up.reply("/x", text("x"))
    watcher = Watcher()
    with crossing(watcher) as line:
        with outside():
            assert client.get(f"{up.url}/x")[2] == b"x"
        assert line.run
    assert watcher.calls == []


# what the tests above are made of


def _without_date(got: tuple[int, dict[str, str], bytes]) -> tuple[int, dict[str, str], bytes]:
    status, headers, body = got
    return status, {name: value for name, value in headers.items() if name != "date"}, body


def _marked(call: Call) -> tuple[tuple[str, str], ...]:
    return with_header(call.headers, "X-Mark", "yes")


def _answer(reply: Reply) -> Callable[[Call], Flow]:
    def stage(call: Call) -> Flow:
        return reply
        yield call

    return stage


def _fail(failed: CallFailed) -> Callable[[Call], Flow]:
    def stage(call: Call) -> Flow:
        raise failed
        yield call

    return stage


def _cut(failed: CallFailed) -> Callable[[Call], Flow]:
    def cut() -> Chunks:
        chunk = yield PULL
        assert chunk is not None
        yield chunk
        raise failed

    def stage(call: Call) -> Flow:
        reply = yield call
        assert isinstance(reply, Reply)
        return reply.pipe(cut)

    return stage


def _pass(call: Call) -> Flow:
    reply = yield call
    assert isinstance(reply, Reply)
    return reply


def _twice() -> Chunks:
    while (chunk := (yield PULL)) is not None:
        yield chunk
        yield chunk


def _dawdle() -> Chunks:
    while (chunk := (yield PULL)) is not None:
        yield chunk
        yield Sleep(3600)


def _failure(work: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:
        work()
    error = caught.value
    error.__traceback__ = None  # frames keep responses alive
    return error


def _closed_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"


class _silent:
    """While entered, this path is answered only after the gate opens, which it does on leaving."""

    def __init__(self, up: Upstream, path: str, gate: Gate) -> None:
        self.up, self.path, self.gate = up, path, gate

    def __enter__(self) -> None:
        def wait(_: object) -> Canned:
            self.gate.wait()
            return text("late")

        self.up.reply(self.path, wait)

    def __exit__(self, *_: object) -> None:
        self.gate.open()


def _real_timeout(client: Client, up: Upstream) -> BaseException:
    with _silent(up, "/silent", Gate()):
        return _failure(lambda: client.get(f"{up.url}/silent", 0.1))
