from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.base import Edit
from flakestorm.wire.editing import Change
from flakestorm.wire.frames import Frame
from flakestorm.wire.snapshots import Answer, Part, SnapshotRewriter, rewrite_whole
from flakestorm.wire.tokens import count_tokens
from wire_support import Fired

Doc = dict[str, Any]


class Plain:
    """The least protocol: `{"n": number, "parts": [{"t": text} | {"c": arguments} | ...], "end": word}`."""

    def __init__(self, doc: Doc) -> None:
        self._doc, self.index = doc, doc.get("n", 0)

    @property
    def parts(self) -> list[Part]:
        return [
            Part("text" if "t" in p else "call" if "c" in p else "other", p, p, "t" if "t" in p else "c")
            for p in self._doc["parts"]
        ]

    def keep(self, parts: Sequence[Part]) -> None:
        self._doc["parts"] = [part.entry for part in parts]

    def say(self, text: str) -> None:
        self._doc["parts"].insert(0, {"t": text})

    @property
    def finish(self) -> str | None:
        return self._doc.get("end")

    @finish.setter
    def finish(self, word: str) -> None:
        self._doc["end"] = word


class Plains:
    words = {"length": "LONG", "stop": "DONE"}

    def __call__(self, doc: Doc) -> Sequence[Answer]:
        return [Plain(each) for each in doc.get("answers", ())]

    def limit(self, doc: Doc, tokens: int) -> bool:
        if doc.get("count", 0) <= tokens:
            return False
        doc["count"] = tokens
        return True


def doc(*parts: Doc, end: str | None = None, **more: object) -> Doc:
    return {"answers": [{"parts": list(parts), **({"end": end} if end else {})}], **more}


def whole(document: Doc, edit: Edit) -> Doc:
    return orjson.loads(rewrite_whole(orjson.dumps(document), edit, Change(edit), Plains()))


def stream(docs: list[Doc], edit: Edit) -> list[list[Doc]]:
    """What goes out for each document, and at the end."""
    rewriter = SnapshotRewriter(edit, Change(edit), Plains())
    out = [[*rewriter.event(Frame(orjson.dumps(each), orjson.dumps(each)))] for each in docs]
    return [[orjson.loads(raw) for raw in batch] for batch in [*out, [*rewriter.end()]]]


def test_a_document_is_cut_part_by_part() -> None:
    fired = Fired()
    answer = doc({"o": 1}, {"t": "one two"}, {"c": {"a": 1}}, {"t": "three"}, end="DONE", count=9)
    edit = Edit(max_tokens=4, on_change=fired)
    assert whole(answer, edit) == doc({"o": 1}, {"t": "one two"}, {"c": {}}, end="LONG", count=4)
    assert fired.times == 1
    assert whole(answer, Edit(max_tokens=99)) == answer


def test_after_the_cut_only_the_end_goes_on() -> None:
    docs = [doc({"t": "one "}), doc({"t": "two"}), doc({"t": "three"}), doc({"o": 1}, end="DONE", count=5), {"ping": 1}]
    assert stream(docs, Edit(max_tokens=1)) == [
        [doc({"t": "one"})],
        [],
        [],
        [doc(end="LONG", count=1)],
        [{"ping": 1}],
        [],
    ]


def test_text_is_held_from_its_first_word_and_spread_over_its_parts() -> None:
    docs = [doc({"o": 1}), doc({"t": "ab"}), doc({"c": {}}), doc({"t": "cd"}, end="DONE")]
    assert stream(docs, Edit(text=lambda text: text.upper() + "!")) == [
        [docs[0]],
        [],
        [],
        [],
        [doc({"t": "ABC"}), docs[2], doc({"t": "D!"}, end="DONE")],
    ]


def test_parts_that_get_no_text_go() -> None:
    docs = [doc({"t": "ab"}), doc({"t": "cd"}, {"c": {}}, end="DONE")]
    assert stream(docs, Edit(text=lambda _: "x"))[-1] == [doc({"t": "x"}), doc({"c": {}}, end="DONE")]


def test_an_answer_without_text_is_given_one() -> None:
    assert whole(doc({"c": {}}, end="DONE"), Edit(text=lambda _: "x")) == doc({"t": "x"}, {"c": {}}, end="DONE")
    assert whole(doc(end="DONE"), Edit(text=lambda _: "x")) == doc({"t": "x"}, end="DONE")


def test_tool_calls_are_left_out_and_the_end_is_said() -> None:
    edit = Edit(drop_tool_calls=True, finish="stop")
    assert whole(doc({"t": "a"}, {"c": {}}, end="CALLS"), edit) == doc({"t": "a"}, end="DONE")
    assert stream([doc({"c": {}}), doc(end="CALLS")], edit) == [[doc()], [doc(end="DONE")], []]


def test_each_answer_is_cut_by_itself() -> None:
    def two(first: str, other: str, **more: object) -> Doc:
        return {"answers": [{"n": 0, "parts": [{"t": first}], **more}, {"n": 1, "parts": [{"t": other}], **more}]}

    docs = [two("one two", "one"), two(" three", " two", end="DONE")]
    assert stream(docs, Edit(max_tokens=2)) == [
        [docs[0]],
        [{"answers": [{"n": 0, "parts": [], "end": "LONG"}, {"n": 1, "parts": [{"t": " two"}], "end": "DONE"}]}],
        [],
    ]


@pytest.mark.parametrize("body", [b"", b"junk", b"[1]", b"{}", b'{"error":"no"}'])
def test_another_document_is_left_alone(body: bytes) -> None:
    edit = Edit(max_tokens=0, text=str.upper, drop_tool_calls=True)
    assert rewrite_whole(body, edit, Change(edit), Plains()) == body


@given(st.lists(st.text("ab ,", max_size=5), max_size=5), st.integers(0, 12))
def test_a_cut_answer_is_a_prefix_in_as_many_tokens(pieces: list[str], limit: int) -> None:
    docs = [*(doc({"t": piece}) for piece in pieces), doc(end="DONE")]
    out = [each for batch in stream(docs, Edit(max_tokens=limit)) for each in batch]
    text = "".join(part.get("t", "") for each in out for answer in each["answers"] for part in answer["parts"])
    assert "".join(pieces).startswith(text)
    assert count_tokens(text) <= limit
    assert (text == "".join(pieces)) == (out[-1]["answers"][0]["end"] == "DONE")
