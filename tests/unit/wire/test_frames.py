import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire import frames as room
from flakestorm.wire.frames import Elements, Frame, Framer, Lines, Pieces, frames, sse_framing
from flakestorm.wire.sse import Parser
from wire_support import chunked

VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('a"\\[]{},é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k"{', max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=5)
FRAMERS = pytest.mark.parametrize("make", [Lines, Elements])


def fed(framer: Framer, body: bytes, *sizes: int) -> list[Frame]:
    return [*(frame for chunk in chunked(body, *sizes) for frame in framer.feed(chunk)), *framer.end()]


@FRAMERS
@given(st.binary() | st.text('[]{}",\\\n a').map(str.encode), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_no_byte_is_lost_and_chunking_changes_nothing(make: type[Framer], body: bytes, sizes: list[int]) -> None:
    found = fed(make(), body, *sizes)
    assert b"".join(frame.raw for frame in found) == body
    assert found == frames(make(), body)


@given(OBJECTS, st.sampled_from(["", " ", "\n", ",\r\n"]), st.integers(1, 9))
def test_the_elements_of_an_array_are_found_in_it(values: list[object], space: str, size: int) -> None:
    gap = space.replace(",", "").encode()
    body = b"[" + (gap + b"," + gap).join(map(orjson.dumps, values)) + gap + b"]"
    framer = Elements()
    found = fed(framer, body, size)
    assert [orjson.loads(frame.data) for frame in found if frame.data is not None] == values
    assert framer.closed


@given(OBJECTS, st.integers(1, 9))
def test_each_line_is_a_document(values: list[object], size: int) -> None:
    body = b"\r\n".join(map(orjson.dumps, values)) + b"\n\n"
    assert [orjson.loads(frame.data) for frame in fed(Lines(), body, size) if frame.data is not None] == values


def test_an_element_is_handed_on_with_its_last_bracket() -> None:
    framer = Elements()
    assert framer.feed(b'[{"a":') == []
    assert framer.pending == b'[{"a":'
    assert framer.feed(b"1}") == [Frame(b'[{"a":1}', b'{"a":1}')]
    assert framer.feed(b"\n,\r\n[2]") == [Frame(b"\n,\r\n[2]", b"[2]")]
    assert (framer.closed, framer.feed(b"\n]")) == (False, [])
    assert (framer.closed, framer.end(), framer.pending) == (True, [Frame(b"\n]")], b"")


def test_an_array_that_breaks_off_is_not_closed() -> None:
    framer = Elements()
    assert frames(framer, b'[{"a":1},{"b":')[-1] == Frame(b',{"b":')
    assert not framer.closed


def test_a_line_is_handed_on_with_its_end() -> None:
    framer = Lines()
    assert framer.feed(b'{"a":1}\n{"b"') == [Frame(b'{"a":1}\n', b'{"a":1}')]
    assert framer.pending == b'{"b"'
    assert (framer.feed(b":2}"), framer.end()) == ([], [Frame(b'{"b":2}', b'{"b":2}')])


def test_a_changed_frame_keeps_what_is_around_it() -> None:
    assert Frame(b"\n,\r\n{}", b"{}").with_data(b"[1]") == Frame(b"\n,\r\n[1]", b"[1]")
    assert Frame(b'["{}",{}', b"{}").with_data(b"[1]").raw == b'["{}",[1]'
    assert Frame(b" {} \r\n", b"{}").with_data(b"[1]").raw == b" [1] \r\n"


@FRAMERS
def test_what_is_too_long_passes_unread(make: type[Framer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_EVENT_BYTES", 10)
    body = b'[{"a":"' + b"x" * 20 + b'"},\n{"b":2}\n]'
    found = fed(make(), body, 4)
    assert b"".join(frame.raw for frame in found) == body
    assert all(frame.data is None for frame in found)


def test_events_are_told_from_documents() -> None:
    assert isinstance(sse_framing(b"data: {}", ""), Parser)
    assert isinstance(sse_framing(b"", "text/event-stream"), Parser)
    assert sse_framing(b'{"a":1}', "text/event-stream") is None
    assert sse_framing(b"<html>", "text/html") is None


def test_pieces_are_what_came() -> None:
    framer = Pieces()
    assert [*framer.feed(b"ab"), *framer.feed(b""), *framer.feed(b"c"), *framer.end()] == [
        Frame(b"ab", b"ab"),
        Frame(b"c", b"c"),
    ]
    assert framer.pending == b""
