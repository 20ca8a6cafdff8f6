from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Reply
from flakestorm.tape.noting import Heads, broke, differ, ended, heads, keep_upload, so_far, unheard
from flakestorm.tape.redact import Redactor

FIELDS = (("Authorization", "Bearer sk-live-1234567890abcdef"), ("Content-Length", "4"))


def test_headers_are_cleaned_once_as_long_as_they_are_the_same() -> None:
    clean = Heads(Redactor())
    first = clean.headers(FIELDS)
    assert "sk-live" not in str(first)
    assert clean.headers(FIELDS) is first
    assert clean.headers((("X", "1"),)) == (("X", "1"),)


NAMES = ["Authorization", "content-length", "x-id", "Set-Cookie", "date"]
VALUES = ["4", "5", "Bearer sk-live-1234567890abcdef", "a=learned-secret-1", "learned-secret-1", "Sun, 22 Nov 2026", ""]
blocks = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), min_size=1, max_size=4).map(tuple)


@given(st.lists(blocks, max_size=6), st.booleans())
def test_fields_are_cleaned_alike_whatever_came_before(said, patterns) -> None:
    more = {"patterns": ["Sun.*"]} if patterns else {}
    one, other = Redactor("k", known=(), **more), Redactor("k", known=(), **more)
    heads = Heads(one)
    for fields in said:
        assert heads.headers(fields) == other.headers(fields)
        assert one.version == other.version


def test_the_head_of_a_reply_is_noted_without_secrets() -> None:
    noted = unheard()
    heads(
        noted, Reply(200, (("Set-Cookie", "session=abc123secret"), ("Content-Type", "text/event-stream"))), Redactor()
    )
    assert (noted.status, noted.stream) == (200, True)
    assert "abc123secret" not in str(noted.headers)


@pytest.mark.parametrize(
    ("error", "end", "said"),
    [
        (None, "eof", None),
        (GeneratorExit(), "client left", None),
        (ConnectionResetError("gone"), "broken", "ConnectionResetError: gone"),
        (KeyboardInterrupt(), "client left", "the agent left before a reply came"),
    ],
)
def test_how_a_body_ended(error, end, said) -> None:
    noted = unheard()
    ended(noted, error)
    assert (noted.end, noted.error) == (end, said)


def test_a_client_that_reads_no_further_than_the_length_has_all() -> None:
    noted = replace(unheard(), headers=FIELDS, chunks=[b"whol", b""], at_ms=[1.0, 2.0])
    ended(noted, GeneratorExit())
    assert noted.end == "eof"


def test_a_copy_is_not_reached_by_what_comes_late() -> None:
    noted = unheard()
    copy = so_far(noted)
    noted.chunks.append(b"late")
    assert copy.chunks == []


def test_chunks_cut_elsewhere_are_no_difference() -> None:
    one, other = unheard(), unheard()
    one.chunks, other.chunks = [b"ab", b"c"], [b"abc"]
    assert not differ(one, other)
    broke(other, OSError("cut"))
    assert differ(one, other)


def test_a_request_that_was_streamed_is_kept_as_far_as_it_was_seen() -> None:
    keep_upload(seen := _Noted(), type("Upload", (), {"seen": bytearray(b"part")})())
    assert seen.body == b"part"
    keep_upload(unseen := _Noted(), object())
    assert "streamed by the agent" in unseen.note


class _Noted:
    body, note = b"", ""
