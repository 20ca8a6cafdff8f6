from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.growing import LONG, Growing

decoded = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
ITEMS = [{"role": "user", "content": f"question {n}: {'x' * 100}"} for n in range(40)]
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
