from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape.delta import Cut, Part, common_prefix, common_suffix, parts_of, quoted, replaced

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


frames = st.sampled_from(
    ["{%s}", '{"id": %s, "role": "assistant", "usage": {"n": %s}, "end": null}', '["é", %s, "x%s"]']
)
values = st.sampled_from(["7", "12", '"msg_01ab"', '"msg_01cd"', '"é"', '"ö"', '"' + "word, " * 60 + '"', "[]", '""'])


@given(frames, st.lists(values, min_size=4, max_size=4))
def test_documents_of_one_form_are_told_piece_by_piece(frame: str, some: list[str]) -> None:
    count = frame.count("%s")
    old, new = ((frame % tuple(part[:count])).encode() for part in (some, some[2:]))
    parts = Cut(old).parts_of(Cut(new))
    if parts is not None:
        assert apply(old, parts) == new
        assert all(a[1] <= b[0] for a, b in pairwise(part for part in parts if isinstance(part, tuple)))
        assert all(part.decode() for part in parts if isinstance(part, bytes))


@given(pieces.map(b"".join), pieces.map(b"".join))
def test_so_is_whatever_has_as_many_quotes(old: bytes, new: bytes) -> None:
    parts = Cut(old).parts_of(Cut(new))
    assert parts is None or apply(old, parts) == new


def test_of_a_reply_only_its_values_are_told() -> None:
    frame = (
        '{"id": "msg_01%s", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "%s"}], '
        '"stop_reason": "end_turn", "usage": {"input_tokens": %d, "output_tokens": 25, "service_tier": "standard"}}'
    )
    old, new = ((frame % said).encode() for said in (("af83", "It is nine.", 30), ("cd07", "It costs 120 euros.", 90)))
    parts = Cut(old).parts_of(Cut(new))
    assert parts is not None
    assert apply(old, parts) == new
    assert [part for part in parts if isinstance(part, bytes)] == [b"cd07", b"It costs 120 euros.", b"90"]


def test_a_document_of_another_form_is_not_told_so() -> None:
    assert Cut(b'{"a": "b"}').parts_of(Cut(b'{"a": "b", "c": "d"}')) is None
    assert Cut(b'"a",' * 20).parts_of(Cut(b'"b",' * 20)) is None
