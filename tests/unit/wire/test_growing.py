from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.wire.growing import LONG, Growing, Sketches
from flakestorm.wire.shape import Sketch, outline

decoded = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
ITEMS = [{"role": "user", "content": f"question {n}: {'x' * 100}"} for n in range(40)]
EDITS = [
    b']}, "messages": [', b"]", b"}", b'"', b", ", b"[]", b'], "messages": [', b'], "model": "n", "x": [', b" ",
    b'], "mess\\u0061ges": "', b"1e999", b"\\",
]  # fmt: skip
values = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=4) | st.just("a[]"), lambda inner: st.lists(inner, max_size=3)
)


def of(body: bytes) -> Growing | None:
    members = decoded(body)
    return Growing.of(body, members, {name: raw for name, raw in members.items() if bytes(raw).startswith(b"[")})


def read_on(first: bytes, second: bytes) -> dict[str, Any] | None:
    growing = of(first)
    assert growing is not None
    members = growing.rest_of(second)
    return None if members is None else {name: json.loads(bytes(raw)) for name, raw in members.items()}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("added", [0, 1, 3])
def test_only_what_is_added_is_read(indent: int | None, added: int) -> None:
    def body(count: int, **more: object) -> bytes:
        return json.dumps({"model": "m", "messages": ITEMS[:count], "n": 1, **more}, indent=indent).encode()

    found = read_on(body(30), body(30 + added, stream=True))
    assert found == {"model": "m", "messages": ITEMS[30 : 30 + added], "n": 1, "stream": True}


def test_it_goes_on_and_on() -> None:
    growing = of(json.dumps({"messages": ITEMS[:25], "model": "m"}).encode())
    for count in (25, 26, 30, 31):
        assert growing is not None
        body = json.dumps({"messages": ITEMS[:count], "model": "m"}).encode()
        members = growing.rest_of(body)
        assert members is not None
        growing = growing.to(body, bytes(members["messages"]))
        assert body[: growing.end] == body[: body.rindex(b"}]") + 1]


FIRST = json.dumps({"messages": ITEMS[:30], "model": "m"}).encode()
HEAD = FIRST[: FIRST.rindex(b"]")]


@pytest.mark.parametrize(
    "second",
    [
        FIRST.replace(b"question 7", b"question 8"),
        json.dumps({"model": "m", "messages": ITEMS[:30]}).encode(),
        HEAD + b",]}",
        HEAD + b", ]}",
        HEAD + b"}",
        HEAD + b"",
        HEAD + b' "x"]}',
        HEAD + b',1], "messages": [1]}',
        HEAD + b',1], "messages": 3}',
        HEAD + b',1], "mess\\u0061ges": [1]}',
        HEAD + b'], "messages": []}',
        HEAD + b',1], "x": ',
        HEAD + b",[1}",
        HEAD + b"," + b"[" * 5000 + b"]" * 5000 + b"]}",
    ],
)
def test_what_does_not_simply_go_on_is_read_whole(second: bytes) -> None:
    growing = of(FIRST)
    assert growing is not None
    assert growing.rest_of(second) is None or json.loads(second)["messages"] == ITEMS[:30]


def test_a_list_that_stands_somewhere_else_too_is_no_ground() -> None:
    assert of(json.dumps({"a": {"messages": ITEMS}, "messages": ITEMS}).encode()) is None
    assert of(json.dumps({"messages": ITEMS[:2]}).encode()) is None
    assert of(json.dumps({"text": "x" * LONG}).encode()) is None


@given(st.lists(values, max_size=4), st.dictionaries(st.sampled_from("abcz"), values, max_size=3))
def test_reading_on_finds_what_reading_finds(added: list[object], more: dict[str, object]) -> None:
    first = json.dumps({"b": "m", "list": ITEMS}).encode()
    second = json.dumps({"b": "m", "list": [*ITEMS, *added], **more}).encode()
    found = read_on(first, second)
    if found is not None:
        found["list"] = [*ITEMS, *found["list"]]
        assert found == json.loads(second)
    assert found is not None or "b" in more


def chats(count: int, **more: object) -> list[bytes]:
    return [
        json.dumps({"model": "m", "messages": ITEMS[: 40 - count + n], "tools": [1], **more}).encode()
        for n in range(count)
    ]


def test_a_chat_that_goes_on_is_sketched() -> None:
    sketches, asked = Sketches(), chats(6)
    found = [sketches.of("1", "u", body) for body in asked]
    assert [type(sketch) for sketch, _ in found] == [bytes, bytes, *[Sketch] * 4]
    for before, body, (_, repeats) in zip(asked[1:], asked[2:], found[2:], strict=False):
        assert repeats is not None
        assert (repeats[0] is body, repeats[1] is before) == (True, True)
        assert body[: repeats[2]] == before[: repeats[2]]
        assert repeats[2] > len(before) - 30
    assert sketches.of("1", "other", asked[-1]) == (asked[-1], None)
    assert sketches.of("1", "u", b"{}") == (b"{}", None)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 60), st.binary(max_size=3) | st.sampled_from(EDITS), st.booleans()),
        max_size=4,
    )
)
def test_a_sketch_tells_what_the_body_tells(todo: list[tuple[int, int, bytes, bool]]) -> None:
    asked = chats(8)
    for turn, back, new, stays in todo:
        for later in range(turn, len(asked) if stays else turn + 1):
            at = len(asked[turn]) - back if not stays else len(asked[turn]) - 60 - back
            asked[later] = asked[later][:at] + new + asked[later][at + (back % 2) :]
    sketches = Sketches()
    for body in asked:
        sketch, _ = sketches.of("1", "u", body)
        assert outline(sketch) == outline(body)


def test_turns_that_are_jobs_go_on_from_one_another() -> None:
    sketches, asked = Sketches(), chats(8)
    found = [sketches.of(f"1.job{n}", "u", body)[1] for n, body in enumerate(asked)]
    assert [
        repeats is not None and repeats[1] is before for repeats, before in zip(found[3:], asked[2:], strict=False)
    ] == [True] * len(asked[3:])


def test_places_are_not_kept_for_ever() -> None:
    sketches, body = Sketches(), chats(1)[0]
    for lane in range(200):
        sketches.of(str(lane), "u", body)
    assert len(sketches._last) <= 16


def test_what_was_compared_already_is_not_compared_again_and_nothing_else_is_taken_for_it() -> None:
    bodies = [json.dumps({"messages": ITEMS[:count], "model": "m"}).encode() for count in (25, 26)]
    growing, later = of(bodies[0]), bodies[1]
    assert growing is not None
    added = growing.added_in(later)
    assert added is not None
    assert growing.added_in(later, (later, growing.body, growing.end)) == added
    other = later.replace(b"question 3", b"question x")
    for told in ((later, growing.body, growing.end), (other, bytes([*growing.body]), growing.end)):
        assert growing.added_in(other, told) is None
    assert growing.added_in(other, (other, growing.body, 40)) is None
