from __future__ import annotations

from flakestorm.boundary.http2 import PREFACE, refusal


def test_a_refusal_is_settings_and_a_goaway_that_asks_for_http_1_1_and_says_why() -> None:
    said = refusal("because")
    settings, goaway = said[:9], said[9:]
    assert (settings, goaway[3]) == (b"\0\0\0\4\0\0\0\0\0", 7)
    assert int.from_bytes(goaway[:3], "big") == len(goaway) - 9
    assert (int.from_bytes(goaway[13:17], "big"), goaway[17:]) == (0xD, b"because")
    assert PREFACE.startswith(b"PRI ")
