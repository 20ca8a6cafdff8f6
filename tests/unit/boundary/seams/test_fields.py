"""Header fields as bytes and as text: nothing is lost on the way, nothing secret is kept, nothing piles up."""

from __future__ import annotations

from flakestorm.boundary.seams import fields as fields_module
from flakestorm.boundary.seams.fields import Fields, phrase, raw_headers, text_headers


def test_secrets_are_not_kept_for_the_next_call() -> None:
    for name, value, kept in ((b"X-Api-Key", b"sk-1", False), (b"X-Long", b"x" * 65, False), (b"X-Plain", b"x", True)):
        first, again = text_headers([(name, value)]), text_headers([(name, value)])
        assert first == again == ((name.decode(), value.decode()),)
        assert (first[0] is again[0]) is kept


def test_fields_that_never_come_again_do_not_pile_up() -> None:
    for n in range(3000):
        text_headers([(b"x-request-id", b"%d" % n)])
    assert len(fields_module._text.__self__) <= 1024  # type: ignore[attr-defined]


def test_header_bytes_survive_the_way_there_and_back() -> None:
    for raw in ([(b"X-Odd", bytes(range(32, 256))), (b"a", b"")], [(b"X-Broken", b"one\ntwo"), (b"a", b"b")], []):
        assert raw_headers(text_headers(raw)) == raw
    assert raw_headers((("x", "日本"),)) == [(b"x", "日本".encode())]


def test_phrases() -> None:
    assert (phrase(503), phrase(299)) == ("Service Unavailable", "")


def test_the_same_fields_are_the_same_object_until_they_change() -> None:
    seen = Fields(b"accept-encoding")
    raw = [(b"Host", b"host", b"x.test"), (b"Accept-Encoding", b"accept-encoding", b"gzip")]
    _, first, at = seen.known(raw)
    assert (first, at) == ((("Host", "x.test"), ("Accept-Encoding", "gzip")), 1)
    assert seen.known(list(raw))[1] is first
    raw[0] = (b"Host", b"host", b"y.test")  # the caller's list is the caller's
    assert seen.known(raw)[1] == (("Host", "y.test"), ("Accept-Encoding", "gzip"))


def test_a_field_that_is_missing_or_there_twice_has_no_place() -> None:
    one = (b"Accept-Encoding", b"accept-encoding", b"gzip")
    seen = Fields(b"accept-encoding")
    assert [seen.known(raw)[2] for raw in ([], [one, one], [one])] == [-1, -1, 0]
