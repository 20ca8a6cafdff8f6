from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.tape import copied, texts
from flakestorm.tape.copied import Text
from flakestorm.tape.delta import common_prefix, common_suffix
from flakestorm.tape.texts import SMALL, Ends, Shelf, Texts

LONG = b"0123456789abcdef" * 64


def stored(*bodies: bytes, grows: bool = True) -> list[object]:
    kept = Texts()
    return [json.loads(json.dumps(kept.put("place", body, grows=grows)[0])) for body in bodies]


def data_of(text: Text | bytes) -> bytes:
    return text.data() if isinstance(text, Text) else text


def read(values: list[object]) -> list[bytes]:
    shelf = Shelf()
    return [data_of(text) for text in [shelf.get(value) for value in values]]


def conversation(turns: int, *, escaped: bool = False) -> list[tuple[str, bytes]]:
    """Requests and replies of a growing chat, each with its place."""
    messages: list[dict[str, str]] = []
    run: list[tuple[str, bytes]] = []
    for turn in range(turns):
        messages.append(
            {"role": "user", "content": f"question {turn}: is there a flight to Oslo, and what is its price?"}
        )
        run.append(("asked", json.dumps({"model": "m", "messages": messages}).encode()))
        said = (
            f"answer {turn}: the earliest one leaves at {turn} o'clock" + (' "sharp"' if escaped else "") + ", é" * 60
        )
        frame = {"id": f"chatcmpl-{turn}", "choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]}
        run.append(("said", json.dumps(frame).encode()))
        messages.append({"role": "assistant", "content": said})
    return run


def put(kept: Texts, run: list[tuple[str, bytes]]) -> list[object]:
    values = [kept.put(place, body, grows=place == "asked", reply=place == "said")[0] for place, body in run]
    return [json.loads(json.dumps(value)) for value in values]


bodies = st.lists(st.sampled_from([b"a", "é".encode(), b"\xff", b"x" * 300, LONG, b'","']), max_size=6).map(b"".join)


@given(st.lists(bodies, max_size=12), st.booleans())
def test_texts_read_back_byte_for_byte(run: list[bytes], grows: bool) -> None:
    assert read(stored(*run, grows=grows)) == run


def test_a_growing_text_is_stored_once() -> None:
    run = [b"".join(b'{"n": %d},' % n for n in range(count)) + b"]}" for count in range(100, 400)]
    values = stored(*run)
    assert len(json.dumps(values)) < 6 * len(run[-1])
    assert read(values) == run


@pytest.mark.parametrize("escaped", [False, True])
def test_a_request_quotes_the_reply_before(escaped: bool) -> None:
    run = conversation(30, escaped=escaped)
    values = put(Texts(), run)
    assert read(values) == [body for _, body in run]
    asked = json.dumps(values[-2])
    assert "question 29" in asked
    assert "o'clock" not in asked  # what was replied stands in the reply alone
    assert json.dumps(values).count("leaves at 7") == 1


def test_replies_that_are_gone_from_the_window_are_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_WINDOW", 2)
    run = [turn for place, body in conversation(20) for turn in ((place, body), (f"{place} again", body + b" "))]
    assert read(put(Texts(), run)) == [body for _, body in run]


def test_texts_of_one_occurrence_get_no_number() -> None:
    shelf = Shelf()
    assert data_of(shelf.get({"once": LONG.decode()})) == LONG
    assert data_of(shelf.get({"once": {"base64": "AAAA"}})) == bytes(3)
    with pytest.raises(ValueError, match="text 0, which is not there"):
        shelf.get({"of": 0, "parts": []})
    shelf.get(LONG.decode())
    assert data_of(shelf.get({"once": {"of": 0, "parts": [[0, 400], "x"]}})) == LONG[:400] + b"x"
    with pytest.raises(ValueError, match="text 1, which is not there"):
        shelf.get({"of": 1, "parts": []})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"of": 0, "parts": [[0, 4, 9]]}, "not there to be quoted"),
        ({"of": 0, "parts": [[0, 4, 2]]}, "not there to be quoted"),  # it quotes itself
        ({"of": 0, "parts": [[0, 4, 3]]}, "not there to be quoted"),  # what it is made from does
        ({"of": 0, "parts": [[0, 2000, 1]]}, "not there to be quoted"),
        ({"of": 0, "parts": [[9, 4, 1]]}, "not there to be quoted"),
        ({"of": 0, "parts": [[-4, 4, 1]]}, "not there to be quoted"),
        ({"of": 0, "parts": [[0, 4, None]]}, "a part of a body"),
        ({"of": 0, "parts": [[0, 1024, 1]] * 65}, "65 of them quoted|66560 of them quoted"),
        ({"once": 7}, "a body must be"),
    ],
)
def test_what_quotes_too_much_or_nothing_is_refused(value: object, message: str) -> None:
    shelf = Shelf()
    for known in (
        LONG.decode(),
        LONG.decode(),
        {"of": 0, "parts": [[0, 1000], [0, 4, 1]]},
        {"of": 2, "parts": [[0, 999]]},
    ):
        shelf.get(known)
    assert data_of(shelf.get({"of": 2, "parts": [[0, 1000], [2, 6, 1]]})) == LONG[:1000] + LONG[2:6]
    with pytest.raises(ValueError, match=message):
        shelf.get(value)


def test_a_text_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_LONGEST", 4 * len(LONG))
    shelf = Shelf()
    shelf.get(LONG.decode())
    for number in range(3):
        shelf.get({"of": number, "parts": [[0, (number + 1) * 1024], [0, 1024, 0]]})
    with pytest.raises(ValueError, match="more than a tape may hold"):
        shelf.get({"of": 3, "parts": [[0, 4096], [0, 1024, 0]]})


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
    monkeypatch.setattr(copied, "_CACHED_BYTES", 4 * len(LONG))
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


@pytest.mark.parametrize("escaped", [False, True])
def test_what_was_compared_already_makes_no_difference(escaped: bool) -> None:
    run = conversation(30, escaped=escaped)
    kept, before, values = Texts(), b"", list[object]()
    for place, body in run:
        if place == "asked":
            prefix = common_prefix(before, body)
            ends = Ends(before, prefix, common_suffix(before, body, min(len(before), len(body)) - prefix))
            value, _, said = kept.put(place, body, grows=True, ends=ends)
            assert said == hashlib.sha256(body).digest()
            before = body
        else:
            value = kept.put(place, body, reply=True)[0]
        values.append(json.loads(json.dumps(value)))
    assert values == put(Texts(), run)


def test_a_request_quotes_no_more_than_a_reader_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_QUOTED_BYTES", 1500)
    said = [b'{"said": "%b"}' % (letter * 900) for letter in (b"a", b"b")]
    asked = [
        b'["%b", "%b", {"more": "%b"}]' % (one, b"m" * 600, two) for one, two in ((b"", b""), (b"a" * 900, b"b" * 900))
    ]
    run = [("asked", asked[0]), ("said", said[0]), ("said", said[1]), ("asked", asked[1])]
    values = put(Texts(), run)
    assert read(values) == [body for _, body in run]


def test_what_is_kept_of_a_request_gives_it_back() -> None:
    kept, run = Texts(), conversation(30)
    held = [(kept.put(place, body, grows=place == "asked", reply=place == "said")[1], body) for place, body in run]
    made = [(text, body) for text, body in held if text is not None]
    assert len(made) > 25
    assert all(text.data() == body for text, body in reversed(made))
