from typing import Any

import orjson
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import pump, read
from flakestorm.wire.base import Asked, Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.gemini.protocol import Gemini
from wire_support import Fired, chunked, edit_said

WIRE = Gemini()
BASE = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash"
VERTEX = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l"
CALL = {"functionCall": {"name": "weather", "args": {"city": "Paris", "days": 3}}, "thoughtSignature": "sig"}
THOUGHT = {"text": "let me see", "thought": True}
SSE, JSON = (("content-type", "text/event-stream"),), (("content-type", "application/json"),)
FORMS = pytest.mark.parametrize("form", ["whole", "array", "sse"])
Doc = dict[str, Any]


def document(*parts: Doc, finish: str | None = "STOP") -> Doc:
    candidate: Doc = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 50, "totalTokenCount": 57}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash", "responseId": "r"}


def chunks(*parts: Doc) -> list[Doc]:
    """The same answer in chunks: text in two pieces, every other part in one, and the end."""
    docs: list[Doc] = []
    for part in parts:
        text = part.get("text", "") if "thought" not in part else ""
        half = len(text) // 2
        pieces = [{**part, "text": text[:half]}, {**part, "text": text[half:]}] if text else [part]
        docs += [document(piece, finish=None) for piece in pieces]
    return [*docs, document({"text": ""})]


def reply(form: str, *parts: Doc) -> Reply:
    if form == "whole":
        return Reply(200, JSON, orjson.dumps(document(*parts)))
    docs = [orjson.dumps(doc) for doc in chunks(*parts)]
    if form == "array":
        return Reply(200, JSON, b"[" + b"\n,\r\n".join(docs) + b"\n]")
    return Reply(200, SSE, b"".join(b"data: " + doc + b"\r\n\r\n" for doc in docs))


@pytest.mark.parametrize(
    ("url", "model"),
    [
        (f"{BASE}:generateContent?key=k", "gemini-2.5-flash"),
        (f"{BASE}:streamGenerateContent?alt=sse", "gemini-2.5-flash"),
        (f"{VERTEX}/publishers/google/models/gemini-2.5-pro:streamGenerateContent", "gemini-2.5-pro"),
        (f"{VERTEX}/endpoints/123:generateContent", "123"),
        ("http://127.0.0.1:9/r/t/p/gemini/v1/models/m%20x:generateContent", "m x"),
        (f"{BASE}:countTokens", None),
        (f"{BASE}:embedContent", None),
    ],
)
def test_a_request_is_known_by_its_path_which_names_the_model(url: str, model: str | None) -> None:
    call = Call("POST", url, body=b'{"contents":[]}')
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)
    assert not WIRE.recognises(Call("POST", url, body=b"{}"))
    assert not WIRE.recognises(Call("GET", url, body=call.body))


@pytest.mark.parametrize("snake", [False, True])
def test_a_request_is_read_in_either_spelling(snake: bool) -> None:
    call, result, system, tools = (
        ("function_call", "function_response", "system_instruction", "function_declarations")
        if snake
        else ("functionCall", "functionResponse", "systemInstruction", "functionDeclarations")
    )
    body = {
        system: {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"parts": [{"text": "Weather?"}, {"inlineData": {}}]},
            {"role": "model", "parts": [THOUGHT, {call: {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}}]},
            {"role": "user", "parts": [{result: {"id": "c1", "name": "weather", "response": {"result": "snow"}}}]},
        ],
        "tools": [{tools: [{"name": "weather"}]}, {"googleSearch": {}}],
    }
    assert WIRE.asked(orjson.dumps(body)) == Asked(
        turns=(
            Turn("system", "Be brief."),
            Turn("user", "Weather?"),
            Turn("model", "", (ToolCall("c1", "weather", '{"city":"Oslo"}'),)),
            Turn("user", "", (), (ToolResult("c1", "weather", '{"result":"snow"}'),)),
        ),
        tools=("weather",),
    )


@FORMS
def test_a_reply_is_read_however_it_comes(form: str) -> None:
    body = read(reply(form, THOUGHT, {"text": "Sunny it is."}, CALL, {"executableCode": {"code": "1"}}))
    call = ToolCall("", "weather", '{"city":"Paris","days":3}')
    expected = Said("Sunny it is.", (call,), "STOP", Usage(7, 50), "gemini-2.5-flash")
    assert WIRE.said(body, stream=form == "sse") == expected


def test_other_candidates_are_not_the_reply() -> None:
    doc = document({"text": "one"})
    doc["candidates"].append({"content": {"parts": [{"text": "two"}]}, "index": 1, "finishReason": "SAFETY"})
    said = WIRE.said(orjson.dumps(doc), stream=False)
    assert (said.text, said.finish) == ("one", "STOP")


def test_a_stream_is_complete_when_it_has_finished_and_an_array_when_it_is_closed() -> None:
    assert not WIRE.said(b"data: " + orjson.dumps(document({"text": "a"}, finish=None)) + b"\n\n", stream=True).complete
    blocked = b'data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n'
    assert WIRE.said(blocked, stream=True).complete
    array = read(reply("array", {"text": "ab"}))
    assert WIRE.said(array, stream=False).complete
    assert not WIRE.said(array[:-1], stream=False).complete


def test_errors_are_google_s_also_in_an_array_and_in_the_middle() -> None:
    for suffix, listed in (
        (":generateContent", False),
        (":streamGenerateContent?alt=sse", False),
        (":streamGenerateContent", True),
    ):
        made = WIRE.failure(Failure("overloaded"), Call("POST", BASE + suffix, body=b'{"contents":[]}'))
        assert (made.status, read(made).startswith(b"[")) == (503, listed)
        assert WIRE.said(read(made), stream=False).error == "The model is overloaded. Please try again later."
    assert WIRE.said(b'data: {"error":{"code":500,"message":"no"}}\n\n', stream=True) == Said(
        error="no", complete=False
    )


@FORMS
def test_a_reply_is_cut_and_says_so(form: str) -> None:
    fired = Fired()
    body = read(
        WIRE.edit(reply(form, THOUGHT, {"text": "The weather in Paris"}, CALL), Edit(max_tokens=2, on_change=fired))
    )
    said = WIRE.said(body, stream=form == "sse")
    assert (said.text, said.tool_calls, said.finish, said.usage) == ("The weat", (), "MAX_TOKENS", Usage(7, 2))
    assert (fired.times, THOUGHT["text"].encode() in body) == (1, True)


@FORMS
def test_arguments_that_are_cut_are_the_members_that_were_complete(form: str) -> None:
    said = edit_said(WIRE, reply(form, CALL), Edit(max_tokens=10))
    assert [call.arguments for call in said.tool_calls] == ['{"city":"Paris"}']


@FORMS
def test_text_is_mapped_and_tool_calls_are_left_out(form: str) -> None:
    answer = reply(form, THOUGHT, {"text": "So it is."}, CALL)
    mapped = edit_said(WIRE, answer, Edit(text=str.upper))
    assert (mapped.text, [call.name for call in mapped.tool_calls], mapped.finish) == ("SO IT IS.", ["weather"], "STOP")
    body = read(WIRE.edit(answer, Edit(text=lambda _: "", drop_tool_calls=True)))
    silent = WIRE.said(body, stream=form == "sse")
    assert (silent.text, silent.tool_calls, b'"text":""' in body and form == "whole") == ("", (), False)
    assert edit_said(WIRE, reply(form, CALL), Edit(text=lambda _: "new")).text == "new"


def test_an_array_passes_as_it_comes() -> None:
    body = read(reply("array", {"text": "one two three"}))
    whole = list(pump(WIRE.edit(Reply(200, JSON, list(chunked(body, 40))), Edit(max_tokens=99)), lambda _: None))
    assert (b"".join(whole), len(whole) > 2) == (body, True)


def test_a_call_that_comes_in_pieces_goes_out_piece_by_piece() -> None:
    begins = document({"functionCall": {"name": "f", "willContinue": True}}, finish=None)
    values = ("x", "y" * 99)
    grow = [
        document({"functionCall": {"partialArgs": [{"jsonPath": f"$.{key}", "stringValue": value}]}}, finish=None)
        for key, value in zip("ab", values, strict=True)
    ]
    docs = [document({"text": "one"}, finish=None), begins, *grow, document({"functionCall": {}})]
    body = b"".join(b"data: " + orjson.dumps(doc) + b"\n\n" for doc in docs)
    whole = orjson.dumps(dict(zip("ab", values, strict=True))).decode()
    for edit, arguments in (
        (Edit(max_tokens=999), [whole]),
        (Edit(max_tokens=40), ['{"a":"x"}']),
        (Edit(max_tokens=2), ["{}"]),
        (Edit(max_tokens=1), []),
        (Edit(drop_tool_calls=True), []),
    ):
        said = edit_said(WIRE, Reply(200, SSE, body), edit)
        assert [call.arguments for call in said.tool_calls] == arguments
        assert said.text == "one"
        assert said.finish == ("STOP" if edit.max_tokens in (None, 999) else "MAX_TOKENS")
