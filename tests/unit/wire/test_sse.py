import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire import sse
from flakestorm.wire.sse import Event, Parser, encode, events, looks_like_sse
from wire_support import chunked

LINES = st.sampled_from(
    [
        b"data: x",
        b"data:y",
        b"data",
        b"data: ",
        b":comment",
        b"event: e",
        b"event",
        b"id: 3",
        b"retry: 1",
        b"\xef\xbb\xbf",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"])
STREAMS = st.lists(st.tuples(LINES, ENDS)).map(lambda parts: b"".join(line + end for line, end in parts))


def said(body: bytes) -> list[tuple[str, bytes | None]]:
    return [(event.name, event.data) for event in events(body)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_ends_a_line(end: bytes) -> None:
    body = end.join([b"event: a", b"data: 1", b"data: 2", b"", b"data: 3", b"", b""])
    assert said(body) == [("a", b"1\n2"), ("", b"3")] + ([("", None)] if end == b"\r\n" else [])


def test_fields_that_are_not_data_or_event_are_kept_in_the_bytes_only() -> None:
    assert events(b": hello\nid: 7\nretry: 10\nunknown\ndata: x\n\n") == [
        Event(b": hello\nid: 7\nretry: 10\nunknown\ndata: x\n\n", b"x")
    ]


def test_comments_and_stray_blank_lines_are_events_without_data() -> None:
    assert said(b": ping\n\n\ndata: x\n\n") == [("", None), ("", None), ("", b"x")]


def test_only_one_space_belongs_to_the_syntax() -> None:
    assert said(b"data:  two\ndata:none\n\n") == [("", b" two\nnone")]


def test_an_empty_data_line_is_data() -> None:
    assert said(b"data\n\ndata:\n\n") == [("", b""), ("", b"")]


def test_a_byte_order_mark_opens_a_stream_and_only_a_stream() -> None:
    assert said(b"\xef\xbb\xbfdata: x\n\n\xef\xbb\xbfdata: y\n\n") == [("", b"x"), ("", None)]


def test_an_event_without_its_blank_line_counts_at_the_end() -> None:
    parser = Parser()
    assert parser.feed(b"data: x\n\ndata: y") == [Event(b"data: x\n\n", b"x")]
    assert parser.pending == b"data: y"
    assert parser.end() == [Event(b"data: y", b"y")]
    assert parser.end() == []


def test_an_event_is_given_as_soon_as_its_blank_line_is_certain() -> None:
    parser = Parser()
    assert [event.data for event in parser.feed(b"data: x\r\n\r")] == [b"x"]
    assert [event.raw for event in parser.feed(b"\ndata: y\r\n\r\n")] == [b"\ndata: y\r\n\r"]


@given(STREAMS, st.lists(st.integers(1, 9), min_size=1))
def test_no_byte_is_lost_and_chunking_does_not_matter(body: bytes, sizes: list[int]) -> None:
    parser = Parser()
    found = [event for chunk in chunked(body, *sizes) for event in parser.feed(chunk)] + parser.end()
    assert b"".join(event.raw for event in found) == body
    assert found == events(body)


@given(st.binary(), st.lists(st.integers(1, 9), min_size=1))
def test_any_bytes_at_all_pass(body: bytes, sizes: list[int]) -> None:
    parser = Parser()
    found = [event for chunk in chunked(body, *sizes) for event in parser.feed(chunk)] + parser.end()
    assert b"".join(event.raw for event in found) == body


@given(
    st.text(alphabet=st.characters(exclude_characters="\r", exclude_categories=["Cs"])),
    st.sampled_from(["", "message_start"]),
)
def test_what_is_encoded_is_read_back(text: str, name: str) -> None:
    [event] = events(encode(text.encode(), name=name))
    assert (event.data, event.name) == (text.encode(), name)


@given(STREAMS)
def test_new_data_keeps_everything_else_of_an_event(body: bytes) -> None:
    for event in events(body):
        if event.data is not None:
            changed = event.with_data(b"new\nlines")
            joined = b"\xef\xbb\xbf" + changed.raw if body.startswith(b"\xef\xbb\xbf") else changed.raw
            assert [(e.name, e.data) for e in events(joined) if e.data is not None] == [(event.name, b"new\nlines")]
            assert event.with_data(event.data).raw.count(b":comment") == event.raw.count(b":comment")


def test_new_data_keeps_the_line_ends() -> None:
    [event] = events(b"event: e\r\n: c\r\ndata: a\r\ndata: b\r\nid: 1\r\n\r")
    assert event.with_data(b"n").raw == b"event: e\r\n: c\r\ndata: n\r\nid: 1\r\n\r"


def test_an_event_without_data_can_be_given_some() -> None:
    assert Event(b": comment\n\n", None, "e").with_data(b"x").raw == b"event: e\ndata: x\n\n"


@pytest.mark.parametrize("size", [1000, 10**6])
def test_what_is_too_long_passes_opaque(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 50)
    body = b"data: short\n\ndata: " + b"x" * 60 + b"\n\ndata: after\n\n"
    parser = Parser()
    found = [event for chunk in chunked(body, size) for event in parser.feed(chunk)] + parser.end()
    assert b"".join(event.raw for event in found) == body
    assert [event.data for event in found if event.data is not None] == [b"short"]
    assert parser.pending == b""


def test_a_long_stream_is_not_kept() -> None:
    parser, event = Parser(), encode(b"x" * 1000)
    tracemalloc.start()
    try:
        for _ in range(5000):
            assert len(parser.feed(event)) == 1
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "announced", "expected"),
    [
        (b"data: x\n\n", True, True),
        (b"data: x\n\n", False, True),
        (b": ping\n\n", False, True),
        (b"event: a\n", False, True),
        (b'{"error": 1}', True, False),
        (b'  {"a": 1}', False, False),
        (b"", True, True),
        (b"", False, False),
        (b"<html>", False, False),
    ],
)
def test_a_body_is_read_as_what_it_plainly_is(body: bytes, announced: bool, expected: bool) -> None:
    assert looks_like_sse(body, stream=announced) is expected


def test_the_second_half_of_a_crlf_can_be_taken_along() -> None:
    parser = Parser()
    assert [event.data for event in parser.feed(b"data: 1\r\n\r\n")] == [b"1"]
    assert parser.take() == b"\n"
    assert parser.take() == parser.pending == b""
    assert [event.raw for event in parser.feed(b"data: 2\r\n\r\ndata: 3")] == [b"data: 2\r\n\r"]
    assert parser.take() == b""  # more than that has come
    assert parser.pending == b"\ndata: 3"


@given(STREAMS, st.integers(1, 7))
def test_taking_it_changes_no_byte_of_the_stream(body: bytes, size: int) -> None:
    parser, out = Parser(), b""
    for chunk in chunked(body, size):
        out += b"".join(event.raw for event in parser.feed(chunk)) + parser.take()
    assert out + b"".join(event.raw for event in parser.end()) == body
