import gzip
from collections.abc import Iterator

import pytest

from flakestorm.core.call import Reply, header
from flakestorm.core.stream import pump, read
from flakestorm.errors import CallFailed
from flakestorm.wire.base import Edit
from flakestorm.wire.editing import Change, Holding, edited, redone, spread
from flakestorm.wire.frames import Lines
from flakestorm.wire.sse import Event
from wire_support import Fired, chunked

SSE = (("Content-Type", "text/event-stream; charset=utf-8"), ("Content-Length", "99"))


class Shout:
    """A rewriter that holds every other event back, to see when what goes out."""

    def __init__(self, edit: Edit, change: Change) -> None:
        self._change, self._held = change, list[bytes]()

    def event(self, event: Event) -> Iterator[bytes]:
        if event.data == b"hold":
            self._held.append(event.raw.upper())
            self._change.mark()
        else:
            yield event.raw

    def end(self) -> Iterator[bytes]:
        yield from self._held
        self._held = []


def shout(reply: Reply, edit: Edit) -> Reply:
    def body(data: bytes, edit: Edit, change: Change) -> bytes:
        change.mark()
        return data.upper()

    return edited(reply, edit, body=body, events=Shout)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(429, (), b"error"),
        Reply(500, SSE, b"data: hold\n\n"),
        Reply(200, (("content-encoding", "br"),), b"?"),
    ],
    ids=["error", "streamed error", "unreadable encoding"],
)
def test_what_cannot_be_edited_is_the_same_object(reply: Reply) -> None:
    assert shout(reply, Edit(max_tokens=1)) is reply


def test_an_edit_that_asks_for_nothing_does_nothing() -> None:
    reply = Reply(200, SSE, b"data: hold\n\n")
    assert shout(reply, Edit()) is reply


@pytest.mark.parametrize(
    "edit",
    [Edit(max_tokens=0), Edit(text=str), Edit(drop_tool_calls=True), Edit(finish="stop")],
    ids=["max_tokens", "text", "drop_tool_calls", "finish"],
)
def test_each_wish_of_an_edit_is_enough(edit: Edit) -> None:
    assert read(shout(Reply(200, (), b"body"), edit)) == b"BODY"


def test_the_length_goes_because_the_new_one_is_not_known_yet() -> None:
    headers = (("Content-Length", "4"), ("content-type", "application/json"))
    assert shout(Reply(200, headers, b"body"), Edit(max_tokens=1)).headers == headers[1:]


def test_a_compressed_reply_is_edited_unpacked() -> None:
    packed = Reply(200, (("content-encoding", "gzip"),), gzip.compress(b"body"))
    reply = shout(packed, Edit(max_tokens=1))
    assert header(reply.headers, "content-encoding") is None
    assert read(reply) == b"BODY"


def test_a_change_is_told_once_and_only_when_it_is_made() -> None:
    fired = Fired()
    chunks = [b"data: go\n\n", b"data: hold\n\ndata: hold\n\n", b"data: end\n\n"]
    out = pump(shout(Reply(200, SSE, chunks), Edit(max_tokens=1, on_change=fired)), lambda _: None)
    assert (next(out), fired.times) == (b"data: go\n\n", 0)
    assert (next(out), fired.times) == (b"data: end\n\n", 1)
    assert b"".join(out) == b"DATA: HOLD\n\nDATA: HOLD\n\n"
    assert fired.times == 1


def test_a_stream_goes_out_as_it_comes_in() -> None:
    came: list[bytes] = []

    def source() -> Iterator[bytes]:
        for chunk in (b"data: 1\n\nda", b"ta: 2\n", b"\ndata: 3\n\n", b"data: 4\n\n"):
            came.append(chunk)
            yield chunk

    out = pump(shout(Reply(200, SSE, source()), Edit(max_tokens=1)), lambda _: None)
    assert (next(out), len(came)) == (b"data: 1\n\n", 1)
    assert (next(out), len(came)) == (b"data: 2\n\ndata: 3\n\n", 3)


def test_what_came_before_a_break_goes_out_before_it() -> None:
    def breaks() -> Iterator[bytes]:
        yield b"data: 1\n\ndata: ha"
        raise CallFailed("reset")

    out = pump(shout(Reply(200, SSE, breaks()), Edit(max_tokens=1)), lambda _: None)
    assert [next(out), next(out)] == [b"data: 1\n\n", b"data: ha"]
    with pytest.raises(CallFailed):
        next(out)


def test_after_a_change_half_an_event_is_not_let_out() -> None:
    def breaks() -> Iterator[bytes]:
        yield b"data: hold\n\ndata: ha"
        raise CallFailed("reset")

    out = pump(shout(Reply(200, SSE, breaks()), Edit(max_tokens=1)), lambda _: None)
    assert next(out) == b"DATA: HOLD\n\n"
    with pytest.raises(CallFailed):
        next(out)


def test_a_client_that_leaves_ends_it() -> None:
    closed = []

    def source() -> Iterator[bytes]:
        try:
            yield b"data: 1\n\n"
            yield b"data: 2\n\n"
        finally:
            closed.append(True)

    out = pump(shout(Reply(200, SSE, source()), Edit(max_tokens=1)), lambda _: None)
    next(out)
    out.close()
    assert closed == [True]


def test_json_too_deep_to_write_is_left_alone() -> None:
    def too_deep(_data: bytes, _edit: Edit, _change: Change) -> bytes:
        raise RecursionError

    assert read(edited(Reply(200, (), b"deep"), Edit(max_tokens=1), body=too_deep, events=Shout)) == b"deep"


def test_an_event_is_rewritten_in_its_own_form() -> None:
    assert redone(Event(b"id: 1\r\ndata: {}\r\n\r", b"{}"), {"a": 1}) == b'id: 1\r\ndata: {"a":1}\r\n\r'


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("abcdef", 3, ["ab", "cd", "ef"]),
        ("abcd", 3, ["ab", "cd", ""]),
        ("a", 3, ["a", "", ""]),
        ("", 2, ["", ""]),
        ("abc", 1, ["abc"]),
    ],
)
def test_text_is_spread_over_its_pieces(text: str, parts: int, expected: list[str]) -> None:
    assert spread(text, parts) == expected


@pytest.mark.parametrize("size", [1, 3, 50])
@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("application/json", b"event: a\ndata: hold\n\n", b"EVENT: A\nDATA: HOLD\n\n"),
        ("", b"\xef\xbb\xbfdata: go\n\ndata: on\n\n", b"\xef\xbb\xbfdata: go\n\ndata: on\n\n"),
        ("text/event-stream", b' {"error": 1}', b' {"ERROR": 1}'),
        ("text/event-stream", b"\n\n", b"\n\n"),
        ("text/event-stream", b"", b""),
        ("application/json", b"", b""),
        ("text/plain", b"hi", b"HI"),
    ],
)
def test_a_body_is_edited_as_what_it_is(size: int, kind: str, body: bytes, expected: bytes) -> None:
    reply = Reply(200, (("content-type", kind),), list(chunked(body, size)))
    assert read(shout(reply, Edit(max_tokens=1))) == expected


def test_a_stream_of_another_kind_is_not_held_back() -> None:
    reply = Reply(200, (("content-type", "application/x-ndjson"),), b"{}\n")
    assert shout(reply, Edit(max_tokens=1)) is reply


@pytest.mark.parametrize("start", [b'{"a":', b'{"a": "long enough to tell"'])
def test_a_document_that_breaks_off_goes_out_as_far_as_it_came(start: bytes) -> None:
    def breaks() -> Iterator[bytes]:
        yield start
        raise CallFailed("reset")

    out = pump(shout(Reply(200, (), breaks()), Edit(max_tokens=1)), lambda _: None)
    assert next(out) == start
    with pytest.raises(CallFailed):
        next(out)


def test_a_protocol_may_stream_in_a_form_of_its_own() -> None:
    def numbered(data: bytes, _edit: Edit, _change: Change) -> bytes:
        return b"document " + data

    kind = (("content-type", "application/x-ndjson"),)
    for headers, expected in ((kind, b"go\nHOLD\n"), ((), b"document hold\ngo\n")):
        reply = edited(
            Reply(200, headers, [b"ho", b"ld\ngo", b"\n"]),
            Edit(max_tokens=1),
            body=numbered,
            events=Shout,
            announced_as="application/x-ndjson",
            framing=lambda _start, media_type: Lines() if media_type == "application/x-ndjson" else None,
        )
        assert read(reply) == expected


class Upper(Holding[bytes]):
    """Holds every event back and maps them all."""

    def event(self, event: Event) -> Iterator[bytes]:
        if self._holds:
            self._held.append((event, event.data or b""))
        else:
            yield from self._trimmed(event, event.data or b"")

    def _mapped(self, held: list[tuple[Event, bytes]]) -> list[tuple[Event, bytes]]:
        return [(event, data.upper()) for event, data in held]

    def _trimmed(self, event: Event, doc: bytes) -> Iterator[bytes]:
        yield doc


def test_what_is_held_back_goes_out_once_and_nothing_is_held_after_it() -> None:
    edit = Edit(text=str.upper)
    rewriter = Upper(edit, Change(edit))
    assert not b"".join(rewriter.event(Event(b"", b"a")))
    assert [*rewriter.end()] == [b"A"]
    assert [*rewriter.event(Event(b"", b"b")), *rewriter.end()] == [b"b"]


def test_without_a_mapping_nothing_is_held_back() -> None:
    edit = Edit(max_tokens=1)
    assert [*Upper(edit, Change(edit)).event(Event(b"", b"a"))] == [b"a"]
