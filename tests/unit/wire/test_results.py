from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from flakestorm.wire.results import Found, Told, one_text, results, rewritten
from flakestorm.wire.shape import Doc


class Plain:
    """A dialect of these tests: `{"results": [{"id", "name", "text"}], "resumed"}`."""

    def find(self, doc: Doc, /) -> Sequence[Found]:
        return [
            Found(r["id"], r["name"], Told(r["text"]), ("results", at), r, r.get("asked", ""), bool(doc.get("resumed")))
            for at, r in enumerate(doc["results"])
        ]

    def spell(self, entry: Doc, told: Told, /) -> Mapping[str, object]:
        return {"text": told.text}


def request(*told: tuple[str, str, str], **more: object) -> bytes:
    return json.dumps({"results": [{"id": i, "name": n, "text": t} for i, n, t in told], **more}).encode()


def found(body: bytes, **names: str) -> list[tuple[object, ...]]:
    standing = results(Plain(), body, name_of=lambda call_id: names.get(call_id, ""), unnamed="unknown")
    return [result.key for result in standing]


def test_a_result_sent_again_is_the_same_one() -> None:
    first = found(request(("c1", "search", "old")))
    assert found(request(("c1", "search", "old"), ("c2", "search", "old")))[:1] == first
    assert found(request(("c1", "search", "shortened by the agent"))) == first, "its id says which one it is"


def test_ids_that_come_again_are_told_apart_by_tool_and_order() -> None:
    keys = found(request(("1", "search", "x"), ("1", "pay", "x"), ("1", "search", "x")))
    assert len(set(keys)) == 3
    assert found(request(("1", "search", "x"), ("1", "pay", "x"))) == keys[:2]


def test_without_an_id_tool_arguments_and_text_tell_results_apart() -> None:
    keys = found(request(("", "search", "a"), ("", "search", "b"), ("", "pay", "a"), ("", "search", "a")))
    assert len(set(keys)) == 4
    assert found(request(("", "search", "b"))) == keys[1:2], "an agent that forgets the beginning sends the same ones"


def test_where_the_provider_keeps_the_conversation_the_text_tells_ids_apart_that_come_again() -> None:
    one = found(request(("1", "search", "Oslo"), resumed=True))
    two = found(request(("1", "search", "Bergen"), resumed=True))
    assert one != two
    assert found(request(("1", "search", "Oslo"), resumed=True)) == one, "a retry"


def test_a_result_is_named_by_the_request_or_by_what_was_said_before() -> None:
    body = request(("c1", "", "x"), ("c2", "pay", "x"), ("c3", "", "x"))
    standing = results(Plain(), body, name_of={"c1": "search", "c2": "no"}.get, unnamed="unknown")  # type: ignore[arg-type]
    assert [result.name for result in standing] == ["search", "pay", "unknown"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff"])
def test_what_is_no_object_holds_no_results(body: bytes) -> None:
    assert results(Plain(), body, name_of=str, unnamed="unknown") == ()


def test_what_is_nested_too_deep_holds_no_results() -> None:
    class Deep(Plain):
        def find(self, doc: Doc, /) -> Sequence[Found]:
            raise RecursionError

    assert results(Deep(), b"{}", name_of=str, unnamed="unknown") == ()


def test_rewriting_changes_what_was_asked_for() -> None:
    body = request(("c1", "search", "old"), ("c2", "pay", "old"))
    standing = results(Plain(), body, name_of=str, unnamed="unknown")
    assert rewritten(Plain(), body, [(standing[1], Told("new"))]) == b'"new"'.join(body.rsplit(b'"old"', 1))
    assert rewritten(Plain(), body, []) == body


def test_a_text_takes_the_shape_that_was_there() -> None:
    marked = [{"type": "image"}, {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]
    assert one_text("plain", "b", "text") == "b"
    assert one_text(None, "b", "text") == "b"
    assert one_text([], "b", "text") == [{"type": "text", "text": "b"}]
    assert one_text(marked, "b", "text") == [{"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]
    assert one_text(marked, "", "text") == "", "providers refuse empty parts"
