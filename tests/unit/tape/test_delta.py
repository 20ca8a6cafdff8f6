from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape.delta import Part, common_prefix, common_suffix, parts_of, quoted, replaced

words = [b"a", b"bc", b',"role":"user"', "é".encode(), b"\xff", b"x" * 700, b"},{"]
pieces = st.lists(st.sampled_from(words), max_size=12)


def apply(old: bytes, parts: list[Part]) -> bytes:
    return b"".join([part if isinstance(part, bytes) else old[part[0] : part[1]] for part in parts])


def ends(old: bytes, new: bytes) -> tuple[int, int]:
    prefix = common_prefix(old, new)
    return prefix, common_suffix(old, new, min(len(old), len(new)) - prefix)


@given(pieces.map(b"".join), pieces.map(b"".join))
def test_the_ends_are_as_long_as_they_can_be(old: bytes, new: bytes) -> None:
    prefix, suffix = ends(old, new)
    least = min(len(old), len(new))
    assert old[:prefix] == new[:prefix]
    assert prefix == least or old[prefix] != new[prefix]
    assert old[len(old) - suffix :] == new[len(new) - suffix :]
    assert prefix + suffix <= least
    assert prefix + suffix == least or old[-suffix - 1] != new[-suffix - 1]


@given(pieces.map(b"".join), pieces.map(b"".join))
def test_parts_give_back_the_text(old: bytes, new: bytes) -> None:
    parts = parts_of(old, new, *ends(old, new))
    assert apply(old, parts) == new
    assert all(a[1] <= b[0] for a, b in pairwise(part for part in parts if isinstance(part, tuple)))


def test_the_frame_of_a_reply_is_not_repeated() -> None:
    old = b'{"id":"one","object":"chat.completion","created":1,"system_fingerprint":"fp_44added55e"}'
    new = b'{"id":"two","object":"chat.completion","created":2,"system_fingerprint":"fp_44added55e"}'
    said = b"".join(part for part in parts_of(old, new, *ends(old, new)) if isinstance(part, bytes))
    assert len(said) < 30


@given(pieces)
def test_no_character_is_cut_in_two(some: list[bytes]) -> None:
    text = b"".join(some).replace(b"\xff", b"")
    old, new = text + "Zürich".encode(), text + "Zörich".encode()
    for part in parts_of(old, new, *ends(old, new)):
        assert not isinstance(part, bytes) or part.decode()


def test_values_are_told_whole_and_the_words_before_them_are_not_repeated() -> None:
    frame = '{"id": "%s", "object": "chat.completion", "created": %d, "model": "gpt-4o-2024-08-06", "said": "it is %s"}'
    old, new = (frame % value for value in (("one", 1760000498, "yes"), ("two", 1760000499, "no, never")))
    parts = parts_of(old.encode(), new.encode(), *ends(old.encode(), new.encode()))
    assert [part for part in parts if isinstance(part, bytes)] == [b'two",', b"1760000499", b"no, never"]


def test_what_was_said_before_is_found_in_quotes() -> None:
    first, second = (
        b"the earliest flight to Oslo is at nine",
        b'she said \\"the flight to Bergen leaves at seven\\" twice',
    )
    replies = [b'{"text": "' + second + b'"}', b'{"text": "' + first + b'"}']
    new = b',{"role":"assistant","content":"' + first + b'"},{"role":"user","content":"' + second + b'","short"}'
    found = list(quoted(new, replies))
    assert [new[start:end] for start, end, _, _ in found] == [first, b"the flight to Bergen leaves at seven\\"]
    assert all(replies[which][begin:].startswith(new[start:end]) for start, end, which, begin in found)


def test_spans_are_replaced() -> None:
    assert replaced(b"abcdef", [(1, 2, b"--"), (4, 6, b"")]) == b"a--cd"
    text = b"abc"
    assert replaced(text, []) is text
