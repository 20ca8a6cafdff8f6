import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.stream import read
from flakestorm.errors import CallFailed
from flakestorm.tape.serving import answering, failure, served
from flakestorm.tape.tokens import scan_reply
from replay_support import reply

A, B = "0b8e8f52-6c3e-4c8e-9d43-7a5d0e1a2b3c", "a-longer-name-than-before-0123456789-abcdef"


def none(_: str) -> list[tuple[int, int, str]]:
    return []


def to_b(text: str) -> list[tuple[int, int, str]]:
    return [(begin, end, B) for begin, end, token in scan_reply(text) if token == A]


def test_a_whole_reply_is_given_as_it_was() -> None:
    given_ = served(reply("hello", status=201, reason="Made"), none)
    assert (given_.status, given_.reason, given_.body) == (201, "Made", b"hello")


def test_a_stream_comes_in_its_pieces() -> None:
    given_ = served(reply(chunks=[b"a", b"bc", b"d"], stream=True), none)
    assert list(given_.body) == [b"a", b"bc", b"d"]  # type: ignore[call-overload]


@given(st.binary(max_size=30), st.binary(max_size=30), st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_renaming_keeps_everything_else_however_it_is_cut(before: bytes, after: bytes, sizes: list[int]) -> None:
    body = before + b" " + A.encode() + b" \xc3\xb8 " + A.encode() + b" " + after
    chunks, at = [], 0
    for n in range(len(body)):
        if at >= len(body):
            break
        chunks.append(body[at : at + sizes[n % len(sizes)]])
        at += sizes[n % len(sizes)]
    given_ = served(reply(chunks=chunks), to_b)
    assert read(given_) == body.replace(A.encode(), B.encode())


def test_the_length_follows() -> None:
    given_ = served(reply(f"x {A}", headers=(("Content-Length", "38"),)), to_b)
    assert given_.headers == (("Content-Length", str(len(B) + 2)),)


def test_answers_have_the_numbers_of_this_run() -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"id": 1}}
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}
    whole = served(reply(json.dumps(answer)), none, {"1": "7"})
    assert json.loads(read(whole)) == {**answer, "id": 7}
    events = b"".join(b"event: message\ndata: " + json.dumps(one).encode() + b"\n\n" for one in (progress, answer))
    lines = read(served(reply(events, stream=True), none, {"1": "7"})).splitlines()
    assert [json.loads(line[5:]) for line in lines if line.startswith(b"data:")] == [
        {**progress, "params": {"progressToken": 7}},
        {**answer, "id": 7},
    ]
    assert read(served(reply("no message"), none, {"1": "7"})) == b"no message"


@pytest.mark.parametrize(
    ("recorded", "how"),
    [
        ({"status": 0, "end": "broken", "error": "CallFailed: refused: nobody listens"}, "refused"),
        ({"status": 0, "end": "broken", "error": "ConnectError: [Errno 111] Connection refused"}, "refused"),
        ({"status": 0, "end": "broken", "error": "ReadTimeout: timed out"}, "timeout"),
        ({"status": 0, "end": "broken", "error": "RemoteProtocolError: Server disconnected"}, "reset"),
        ({"status": 0, "end": "client left"}, "timeout"),
    ],
)
def test_a_call_without_a_reply_fails_again(recorded, how) -> None:
    with pytest.raises(CallFailed) as caught:
        served(reply(**{"chunks": [], **recorded}), none)
    assert (caught.value.how, caught.value.injected) == (how, False)


def test_a_stream_that_broke_breaks_after_the_same_pieces() -> None:
    recorded = reply(chunks=[b"a", b"b"], end="broken", error="CallFailed: reset: gone", stream=True)
    pieces = iter(served(recorded, none).body)  # type: ignore[arg-type]
    assert [next(pieces), next(pieces)] == [b"a", b"b"]
    with pytest.raises(CallFailed, match="gone"):
        next(pieces)
    assert failure(reply(end="client left")).how == "reset"


@pytest.mark.parametrize(
    ("body", "asked", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":9,"result":{}}', b'{"id":3}', b'{"jsonrpc":"2.0","id":3,"result":{}}'),
        (b'event: message\ndata: {"jsonrpc":"2.0","id":9,"result":1}\n\n', b'{"id":3}', None),
        (
            b'data: {"jsonrpc":"2.0","id":9,"result":1}\n\n',
            b'{"id":3}',
            b'data: {"jsonrpc":"2.0","id":3,"result":1}\n\n',
        ),
        (b"plain", b'{"id":3}', b"plain"),
        (b'{"n": 1}', b"[]", b'{"n": 1}'),
    ],
)
def test_an_answer_of_json_rpc_gets_the_number_of_its_question(
    body: bytes, asked: bytes, expected: bytes | None
) -> None:
    wanted = body.replace(b'"id":9', b'"id":3') if expected is None else expected
    assert answering(body, asked) == wanted
