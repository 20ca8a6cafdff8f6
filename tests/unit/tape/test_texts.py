from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape import texts
from flakestorm.tape.texts import SMALL, Shelf, Text, Texts

LONG = b"0123456789abcdef" * 64


def stored(*bodies: bytes, grows: bool = True) -> list[object]:
    kept = Texts()
    return [json.loads(json.dumps(kept.put("place", body, grows=grows)[0])) for body in bodies]


def data_of(text: Text | bytes) -> bytes:
    return text.data() if isinstance(text, Text) else text


def read(values: list[object]) -> list[bytes]:
    shelf = Shelf()
    return [data_of(text) for text in [shelf.get(value) for value in values]]


bodies = st.lists(st.sampled_from([b"a", "é".encode(), b"\xff", b"x" * 300, LONG, b'","']), max_size=6).map(b"".join)


@given(st.lists(bodies, max_size=12), st.booleans())
def test_texts_read_back_byte_for_byte(run: list[bytes], grows: bool) -> None:
    assert read(stored(*run, grows=grows)) == run


def test_a_growing_text_is_stored_once() -> None:
    run = [b"".join(b'{"n": %d},' % n for n in range(count)) + b"]}" for count in range(100, 400)]
    values = stored(*run)
    assert len(json.dumps(values)) < 6 * len(run[-1])
    assert read(values) == run


def test_the_hash_is_that_of_the_whole() -> None:
    kept = Texts()
    for body in (LONG + b"]", LONG + b",1]", LONG + b",1,2]", b"other" * 300, LONG + b",1,2,3]", b"small"):
        assert kept.put("p", body, grows=True)[2] == hashlib.sha256(body).digest()


def test_the_same_text_again_costs_nothing() -> None:
    assert stored(LONG, LONG)[1] == {"of": 0, "parts": [[0, len(LONG)]]}


def test_a_text_out_of_the_window_is_written_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_WINDOW", 2)
    kept, shelf = Texts(), Shelf()
    run = [(place, place.encode() * SMALL + b"%d" % n) for n in range(3) for place in ("a", "b", "c")]
    values = [kept.put(place, body, grows=True)[0] for place, body in run]
    assert all(isinstance(value, str) for value in values)
    assert [data_of(shelf.get(value)) for value in values] == [body for _, body in run]


def test_only_the_last_ones_stay_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_CACHED_BYTES", 4 * len(LONG))
    run = [LONG + b"%d" % n for n in range(50)]
    shelf = Shelf()
    made = [shelf.get(value) for value in stored(*run)]
    assert [data_of(text) for text in made] == run
    assert sum(isinstance(text, Text) and text._data is not None for text in made) < 10
    assert data_of(made[25]) == run[25]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"of": 3, "parts": []}, "text 3, which is not there"),
        ({"of": "0", "parts": []}, "which is not there"),
        ({"of": 0, "parts": 7}, "which is not there"),
        ({"of": 0, "parts": [[0, 10_000]]}, "which has 1024"),
        ({"of": 0, "parts": [[5, 9], [0, 4]]}, "refers to bytes"),
        ({"of": 0, "parts": [[0, 4], [0, 4]]}, "refers to bytes"),
        ({"of": 0, "parts": [[0]]}, "a part of a body"),
        ({"of": 0, "parts": [[True, 3]]}, "a part of a body"),
        ({"of": 0, "parts": [7]}, "a body must be"),
        (7, "a body must be"),
    ],
)
def test_what_refers_to_nothing_is_refused(value: object, message: str) -> None:
    shelf = Shelf()
    shelf.get(LONG.decode())
    with pytest.raises(ValueError, match=message):
        shelf.get(value)


def test_a_chain_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_DEPTH", 5)
    run = [LONG + b"%d" % n for n in range(20)]
    assert read(stored(*run)) == run
    shelf = Shelf()
    shelf.get(LONG.decode())
    for n in range(5):
        shelf.get({"of": n, "parts": [[0, len(LONG)]]})
    with pytest.raises(ValueError, match="not there"):
        shelf.get({"of": 5, "parts": [[0, len(LONG)]]})
