from __future__ import annotations

import gzip
import json
import zlib
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import header
from flakestorm.importers import bodies
from flakestorm.importers.bodies import body_of, fields_of, pieces, plain

TEXT = '{"text": "é"}'
JSON = (("Content-Type", "application/json"),)
AWS = (("content-type", "application/vnd.amazon.eventstream"),)


@pytest.mark.parametrize(
    "message",
    [
        {"body": TEXT},
        {"body": TEXT.encode()},
        {"body": [TEXT[:5].encode(), TEXT[5:]]},
        {"body": {"string": TEXT}},
        {"body": {"string": TEXT.encode()}},
        {"body": {"string": TEXT, "encoding": "utf-8"}},
        {"body": {"encoding": "ASCII-8BIT", "string": TEXT}},
        {"body": {"base64_string": b64encode(TEXT.encode()).decode(), "encoding": "utf-8", "string": ""}},
        {
            "body": {
                "base64_string": b64encode(TEXT.encode()).decode()[:8] + "\n" + b64encode(TEXT.encode()).decode()[8:]
            }
        },
        {"content": TEXT},
    ],
)
def test_every_way_to_store_a_body_gives_its_bytes(message: dict[str, Any]) -> None:
    assert body_of(message) == TEXT.encode()


@pytest.mark.parametrize("message", [{"parsed_body": {"text": "é"}, "body": ""}, {"body": {"text": "é"}}])
def test_a_body_kept_as_its_json_value_is_written_again(message: dict[str, Any]) -> None:
    assert json.loads(body_of(message)) == {"text": "é"}


@pytest.mark.parametrize("value", [[], [1, None], {"string": 1, "other": 2}, {"1": {}}, 2**70, 0.5, "just text"])
def test_a_parsed_body_may_be_any_json(value: Any) -> None:
    assert json.loads(body_of({"parsed_body": value})) == value


@pytest.mark.parametrize("message", [{}, {"body": None}, {"body": ""}, {"body": {"string": None}}, {"body": []}])
def test_no_body_is_empty(message: dict[str, Any]) -> None:
    assert body_of(message) == b""


def test_an_empty_json_object_is_not_an_empty_body() -> None:
    assert body_of({"body": {}}) == b"{}"


def test_the_encoding_a_recorder_states_is_used_where_it_fits() -> None:
    assert body_of({"body": {"string": "é", "encoding": "ISO-8859-1"}}) == b"\xe9"
    assert body_of({"body": {"string": "☃", "encoding": "ISO-8859-1"}}) == "☃".encode()
    assert body_of({"body": {"string": "é", "encoding": "zlib_codec"}}) == "é".encode()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"body": 5}, "it must be text"),
        ({"body": [{"a": 1}]}, "it must be text"),
        ({"body": {"string": [[1]]}}, "it must be text"),
        ({"body": {"base64_string": "%%%"}}, "is not base64"),
        ({"parsed_body": {"a": b"\xff"}}, "JSON has no spelling"),
        ({"parsed_body": {("a", 1): 1}}, "JSON has no spelling"),
    ],
)
def test_what_is_no_body_is_refused(message: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        body_of(message)


@pytest.mark.parametrize(
    "value",
    [
        {"A": ["1", "2"], "b": "3"},
        {"A": ("1", "2"), "b": b"3"} | {"A": ["1", b"2"]},
        [["A", "1"], ["A", "2"], ["b", "3"]],
        ["A: 1\r\n", "A: 2\r\n", "b:3\r\n"],
        [("A", 1), ("A", "2"), ("b", 3)],
    ],
)
def test_every_way_to_store_headers_gives_the_fields_in_order(value: Any) -> None:
    assert fields_of(value) == (("A", "1"), ("A", "2"), ("b", "3"))


def test_header_values_are_on_one_line() -> None:
    assert fields_of({"a": "1\r\nset-cookie: x", "b": None, "c": True}) == (
        ("a", "1 set-cookie: x"),
        ("b", ""),
        ("c", "true"),
    )
    assert fields_of(None) == ()


@pytest.mark.parametrize("value", ["a: 1", [1], [["a"]], ["a"], {"a": [{}]}, {"a": {"b": "c"}}])
def test_what_are_no_headers_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        fields_of(value)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, lambda b: zlib.compress(b, wbits=-15)])
def test_a_compressed_body_is_unpacked_and_its_length_told(pack: Any) -> None:
    coding = "gzip" if pack is gzip.compress else "deflate"
    body = pack(TEXT.encode() * 20)
    stored = (*JSON, ("Content-Length", str(len(body))), ("Content-Encoding", coding))
    headers, unpacked = plain(stored, body)
    assert unpacked == TEXT.encode() * 20
    assert headers == (*JSON, ("Content-Length", str(len(unpacked))))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_body_stored_unpacked_loses_the_header_that_says_otherwise(coding: str) -> None:
    headers, body = plain((*JSON, ("content-encoding", coding), ("content-length", "7")), TEXT.encode())
    assert (headers, body) == ((*JSON, ("content-length", str(len(body)))), TEXT.encode())


@pytest.mark.parametrize("headers", [JSON, (), (("content-type", "text/event-stream; charset=utf-8"),)])
def test_a_packed_text_without_the_header_is_unpacked(headers: Any) -> None:
    assert plain(headers, gzip.compress(TEXT.encode())) == (headers, TEXT.encode())


@pytest.mark.parametrize(
    "headers",
    [
        (("content-type", "application/gzip"),),
        (("content-type", "application/json"), ("content-encoding", "br")),
        (("content-type", "application/json"), ("content-encoding", "deflate, gzip")),
    ],
)
def test_what_cannot_be_unpacked_stays_as_it_is(headers: Any) -> None:
    body = gzip.compress(TEXT.encode())
    assert plain(headers, body) == (headers, body)


def test_a_damaged_body_is_unpacked_as_far_as_it_goes() -> None:
    whole = bytes(range(256)) * 4000
    body = gzip.compress(whole)
    headers = (("content-encoding", "gzip"),)
    kept, unpacked = plain(headers, body[: len(body) // 2])
    assert kept == ()
    assert unpacked
    assert whole.startswith(unpacked)
    assert plain(headers, b"\x1f\x8b\xff\xff") == (headers, b"\x1f\x8b\xff\xff")


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_DECODED_BYTES", 2**20)
    with pytest.raises(ValueError, match="unpacks to more than 1 MB"):
        plain((("content-encoding", "gzip"),), gzip.compress(bytes(2**22)))


def test_a_reply_without_a_body_keeps_its_length() -> None:
    headers = (("content-length", "1234"), ("content-encoding", "gzip"))
    assert plain(headers, b"") == (headers, b"")


def test_a_stream_is_one_piece_per_event() -> None:
    body = b": hello\n\ndata: 1\n\ndata: 2\r\n\r\ndata: 3"
    headers = (("Content-Type", "text/event-stream; charset=utf-8"),)
    assert pieces(headers, body) == (headers, [b": hello\n\n", b"data: 1\n\n", b"data: 2\r\n\r", b"\ndata: 3"])


def test_a_line_stream_is_one_piece_per_line() -> None:
    headers = (("content-type", "application/x-ndjson"),)
    assert pieces(headers, b'{"a":1}\n{"b":2}\n') == (headers, [b'{"a":1}\n', b'{"b":2}\n'])


def message(payload: bytes) -> bytes:
    """An AWS event-stream message without headers, its checksums left empty."""
    return (16 + len(payload)).to_bytes(4) + bytes(8) + payload + bytes(4)


def test_an_aws_stream_is_one_piece_per_message() -> None:
    first, second = message(b"\n\n"), message(b"")
    assert pieces(AWS, first + second)[1] == [first, second]
    assert pieces(AWS, first + second[:9])[1] == [first, second[:9]]
    assert pieces(AWS, first + b"no message")[1] == [first, b"no message"]
    assert pieces(AWS, first + bytes(40))[1] == [first, bytes(40)]


def test_a_stream_whose_type_was_dropped_is_known_by_its_look() -> None:
    headers, found = pieces((("x", "y"),), b"data: 1\n\ndata: 2\n\n")
    assert header(headers, "content-type") == "text/event-stream"
    assert found == [b"data: 1\n\n", b"data: 2\n\n"]


def test_a_document_is_one_piece_and_nothing_is_none() -> None:
    assert pieces(JSON, TEXT.encode()) == (JSON, [TEXT.encode()])
    assert pieces((), TEXT.encode()) == ((), [TEXT.encode()])
    assert pieces(JSON, b"") == (JSON, [])


def test_a_stream_of_nothing_but_line_ends_stays_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_MAX_PIECES", 10)
    assert pieces((("content-type", "text/event-stream"),), b"\n" * 11)[1] == [b"\n" * 11]
    found = pieces(AWS, message(b"x") * 12)[1]
    assert (len(found), b"".join(found)) == (10, message(b"x") * 12)


@given(
    kind=st.sampled_from(["text/event-stream", "application/x-ndjson", "application/json", "", AWS[0][1]]),
    coding=st.sampled_from(["gzip", "deflate", "br", ""]),
    body=st.binary() | st.text(alphabet="data: \r\n1").map(str.encode),
)
def test_pieces_joined_are_the_body_and_any_body_is_taken(kind: str, coding: str, body: bytes) -> None:
    headers, content = plain((("content-type", kind), ("content-encoding", coding)), body)
    assert b"".join(pieces(headers, content)[1]) == content


@given(body=st.binary(min_size=1), length=st.integers(0, 10))
def test_packing_is_undone(body: bytes, length: int) -> None:
    stored = (("content-encoding", "gzip"), ("content-length", str(length)))
    assert plain(stored, gzip.compress(body)) == ((("content-length", str(len(body))),), body)
