from __future__ import annotations

from flakestorm.boundary.fields import end_to_end, text_of


def test_hop_by_hop_fields_do_not_cross() -> None:
    raw = (
        (b"X-Named", b"gone"), (b"Connection", b"x-named, keep-alive"), (b"TE", b"trailers"), (b"Keep-Alive", b"5"),
        (b"Proxy-Authorization", b"Basic eA=="), (b"x-flakestorm-patience-ms", b"5"), (b"Host", b"gw"),
        (b"X-Kept", b"1"), (b"x-kept", b"2"), (b"X-Latin", b"\xe9"), (b"X-Utf", "é".encode()),
    )  # fmt: skip
    kept = (("Host", "up"), ("X-Kept", "1"), ("x-kept", "2"), ("X-Latin", "é"), ("X-Utf", "é"))
    assert end_to_end(raw, host="up") == kept
    assert end_to_end(((b"Host", b"gw"),)) == (("Host", "gw"),)


def test_bytes_that_are_not_utf_8_are_read_as_latin_1() -> None:
    assert (text_of("é".encode()), text_of(b"\xe9")) == ("é", "é")
