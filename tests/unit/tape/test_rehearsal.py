from __future__ import annotations

from collections.abc import Callable

import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import drive
from flakestorm.core.site import Site
from flakestorm.core.stream import pump
from flakestorm.errors import CallFailed
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.redact import Redactor
from flakestorm.tape.rehearsal import rehearsal
from flakestorm.tape.telling import Telling

SITE = Site("tool", "search", 1)


def never(_: object) -> Reply:
    raise AssertionError("the world was asked")


def ask(recorded: Recorded, recall: Callable[[float], None] = lambda _: None, site: Site = SITE) -> Reply:
    stage = rehearsal([Exchange(SITE, reply=recorded, t_ms=5, duration_ms=2)], recall)
    return drive(stage(Call("POST", "https://tools.test", site=site)), never, never)  # type: ignore[arg-type]


def test_a_site_gets_its_reply_whatever_is_asked() -> None:
    moments: list[float] = []
    reply = ask(Recorded(201, (("X-A", "b"),), "Created", [b"one ", b"two"], [6.5, 7.0]), moments.append)
    assert (reply.status, reply.reason, reply.headers, reply.body) == (201, "Created", (("X-A", "b"),), b"one two")
    assert moments == [6.5]


def test_a_stream_keeps_its_pieces_and_its_break() -> None:
    assert list(pump(ask(Recorded(200, chunks=[b"a", b"b"], stream=True)), never)) == [b"a", b"b"]
    pieces = pump(ask(Recorded(200, chunks=[b"a"], stream=True, end="broken", error="ReadError: gone")), never)
    assert next(pieces) == b"a"
    with pytest.raises(CallFailed, match="gone"):
        next(pieces)


@pytest.mark.parametrize(("error", "how"), [("ReadTimeout: too slow", "timeout"), ("ConnectError: no", "reset")])
def test_a_failure_is_a_failure_again(error: str, how: str) -> None:
    moments: list[float] = []
    with pytest.raises(CallFailed) as failed:
        ask(Recorded(0, end="broken", error=error), moments.append)
    assert failed.value.how == how
    assert moments == [7]


def test_a_reply_without_a_body_says_no_time() -> None:
    moments: list[float] = []
    assert ask(Recorded(204), moments.append).status == 204
    assert moments == []


def test_what_was_not_recorded_never_goes_to_the_world() -> None:
    with pytest.raises(CallFailed, match="nothing was recorded at tool/search#2"):
        ask(Recorded(200), site=Site("tool", "search", 2))


def test_a_secret_that_is_known_here_is_given_back() -> None:
    redactor = Redactor("f" * 32, known=["planted-1"])
    recorded = Recorded(200, chunks=[redactor.placeholder(b"planted-1")])
    stage = rehearsal([Exchange(SITE, reply=recorded)], lambda _: None, Telling(redactor))
    reply = drive(stage(Call("POST", "https://tools.test", site=SITE)), never, never)  # type: ignore[arg-type]
    assert reply.body == b"planted-1"


def rehearsed(*exchanges: Exchange) -> Callable[[Call], Reply]:
    stage = rehearsal(exchanges, lambda _: None)
    return lambda call: drive(stage(call), never, never)  # type: ignore[arg-type]


def test_calls_made_side_by_side_get_their_own_replies_whoever_comes_first() -> None:
    def asked(n: int, body: bytes) -> Exchange:
        said = Recorded(200, chunks=[b"to " + body])
        return Exchange(Site("tool", "search", n), url="https://tools.test", body=body, reply=said, n=n)

    def call(n: int, body: bytes) -> Call:
        return Call("POST", "https://tools.test", body=body, site=Site("tool", "search", n))

    ask = rehearsed(asked(1, b"Oslo"), asked(2, b"Rome"), asked(3, b"Bern"))
    assert [ask(call(n, body)).body for n, body in ((1, b"Rome"), (2, b"Paris"), (3, b"Bern"))] == [
        b"to Rome",
        b"to Oslo",
        b"to Bern",
    ]


def test_an_answer_over_mcp_has_the_number_of_the_call_and_a_server_says_what_it_said() -> None:
    def asked(key: int, method: str = "tools/call") -> bytes:
        return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":{"name":"pay"}}' % (key, method.encode())

    answer = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    lines = [b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n', answer + b"\n"]
    place = {"url": "stdio://w", "method": "CALL", "lane": "1", "wire": "mcp"}
    pay = Exchange(Site("mcp", "pay", 1), body=asked(1), reply=Recorded(200, chunks=lines, stream=True), n=0, **place)
    pay.duration_ms = 10
    question = {**place, "url": "stdio://w/client"}
    roots = Exchange(Site("mcp", "roots/list", 1), body=asked(7, "roots/list"), t_ms=5, n=1, **question)  # type: ignore[arg-type]
    said: list[Call] = []

    def agent(call: Call) -> Reply:
        said.append(call)
        return Reply(200, (), b"mine")

    stage = rehearsal([pay, roots], lambda _: None)
    call = Call("CALL", "stdio://w", body=asked(9), kind="mcp", name="pay", wire="mcp", lane="1", site=pay.site)
    reply = drive(stage(call), agent, never)  # type: ignore[arg-type]
    assert b"".join(pump(reply, never)) == lines[0] + answer.replace(b"1,", b"9,") + b"\n"
    assert [(each.url, each.body) for each in said] == [("stdio://w/client", asked(7, "roots/list"))]
    asks = Call("CALL", "stdio://w/client", body=asked(7, "roots/list"), kind="mcp", site=roots.site)
    assert drive(stage(asks), agent, never).body == b"mine"  # type: ignore[arg-type]


@pytest.mark.parametrize(("key", "body"), [(1, b'{"jsonrpc": "2.0", "id": 1}'), (12, b'{"jsonrpc":"2.0","id":12}')])
def test_an_answer_over_http_keeps_its_bytes_or_says_its_new_length(key: int, body: bytes) -> None:
    site, whole = Site("mcp", "ping", 1), b'{"jsonrpc": "2.0", "id": 1}'
    said = Recorded(200, (("content-length", str(len(whole))),), chunks=[whole])
    ask = rehearsed(Exchange(site, url="http://h/mcp", body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}', reply=said))
    asked = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % key
    reply = ask(Call("POST", "http://h/mcp", body=asked, kind="mcp", name="ping", site=site))
    assert (reply.body, reply.headers) == (body, (("content-length", str(len(body))),))
