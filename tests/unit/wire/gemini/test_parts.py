from typing import Any

import orjson
import pytest

from flakestorm.wire.gemini.parts import CallPieces, GeminiAnswer, GeminiAnswers, content_text

CALL = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "sig"}


def answer(*parts: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, **more}


def test_text_is_what_the_text_parts_say_without_thoughts() -> None:
    parts = [{"text": "hm", "thought": True}, {"text": "a"}, {"executableCode": {}}, {"text": "b"}, {"text": 1}]
    assert content_text({"parts": parts}) == "ab"
    assert content_text({}) == ""


def test_an_empty_text_that_is_left_goes_unless_it_is_signed() -> None:
    signed = {"text": "", "thoughtSignature": "s"}
    candidate = answer({"text": ""}, signed, CALL)
    view = GeminiAnswer(candidate)
    view.keep(view.parts)
    assert candidate["content"]["parts"] == [signed, CALL]
    view.keep([])
    assert candidate["content"] == {"role": "model"}


def test_new_text_comes_before_the_first_tool_call() -> None:
    candidate = answer({"text": "hm", "thought": True}, CALL)
    GeminiAnswer(candidate).say("new")
    assert candidate["content"]["parts"][1:] == [{"text": "new"}, CALL]
    empty: dict[str, Any] = {"finishReason": "STOP"}
    GeminiAnswer(empty).say("new")
    assert empty["content"] == {"role": "model", "parts": [{"text": "new"}]}


def test_another_end_takes_the_old_one_s_message_with_it() -> None:
    candidate = answer(finishReason="SAFETY", finishMessage="why", index=1)
    view = GeminiAnswer(candidate)
    assert (view.index, view.finish) == (1, "SAFETY")
    view.finish = "MAX_TOKENS"
    assert (candidate["finishReason"], "finishMessage" in candidate) == ("MAX_TOKENS", False)


def test_thoughts_are_counted_apart() -> None:
    doc = {"usageMetadata": {"candidatesTokenCount": 9, "thoughtsTokenCount": 4, "totalTokenCount": 20}}
    assert GeminiAnswers().limit(doc, 5)
    assert doc["usageMetadata"] == {"candidatesTokenCount": 5, "thoughtsTokenCount": 4, "totalTokenCount": 16}
    assert not GeminiAnswers().limit(doc, 5)
    assert not GeminiAnswers().limit({}, 5)


def pieces(*parts: tuple[str, object]) -> Any:
    calls = CallPieces()
    calls.add({"parts": [{"functionCall": {"name": "f", "willContinue": True}}]})
    for path, value in parts:
        key = {str: "stringValue", bool: "boolValue", type(None): "nullValue"}.get(type(value), "numberValue")
        calls.add({"parts": [{"functionCall": {"partialArgs": [{"jsonPath": path, key: value}]}}]})
    calls.add({"parts": [{"functionCall": {}}]})
    (call,) = calls.calls()
    return orjson.loads(call.arguments)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([("$.a", "x"), ("$.a", "y"), ("$.a", "")], {"a": "xy"}),
        ([("$.a.b", 1.5), ("$.a.c", True), ("$.d", None)], {"a": {"b": 1.5, "c": True}, "d": None}),
        ([("$.l[0].n", "x"), ("$.l[1].n", "y"), ("$.l[0].n", "z")], {"l": [{"n": "xz"}, {"n": "y"}]}),
        ([("$['a b']", "x")], {"a b": "x"}),
        ([("$.a", "x"), ("$.a[0]", "y"), ("$", "z"), ("junk", "z")], {"a": ["y"]}),
        ([("$.l[99999999]", "x")], {}),
    ],
)
def test_arguments_grow_piece_by_piece(parts: list[tuple[str, object]], expected: object) -> None:
    assert pieces(*parts) == expected
