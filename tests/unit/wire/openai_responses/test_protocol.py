import orjson
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Asked, Edit, Failure, Said, ToolCall, ToolResult, Turn, Usage
from flakestorm.wire.openai_responses.protocol import OpenAIResponses
from flakestorm.wire.sse import encode
from wire_responses import REASONING, SEARCH, documents, message, response, said, streamed, tool, whole

WIRE = OpenAIResponses()
URL = "https://api.openai.com/v1/responses"
CALL = tool("weather", '{"city":"Paris"}')


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        (URL, {"model": "gpt-5", "input": "hi"}, "gpt-5"),
        (URL + "/", {"model": "gpt-5", "input": []}, "gpt-5"),
        (
            "https://x.openai.azure.com/openai/v1/responses?api-version=preview",
            {"model": "mine", "input": "hi"},
            "mine",
        ),
        (URL, {"model": "gpt-5", "previous_response_id": "resp_1"}, "gpt-5"),
        (URL, {"prompt": {"id": "pmpt_1"}}, ""),
        (URL + "/compact", {"model": "gpt-5", "input": []}, "gpt-5"),
        (URL, {"model": "gpt-5"}, None),
        (URL, {"input": "hi"}, None),
        (URL, {"answers": [1]}, None),
        (URL + "/resp_1/cancel", {"model": "gpt-5", "input": "hi"}, None),
        (URL + "/input_tokens", {"model": "gpt-5", "input": "hi"}, None),
    ],
)
def test_a_request_is_known_by_its_path_and_what_it_asks(url: str, body: object, model: str | None) -> None:
    call = Call("POST", url, body=orjson.dumps(body))
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)
    assert not WIRE.recognises(Call("GET", url, body=call.body))


def test_deltas_without_an_item_are_the_text_where_nothing_else_states_it() -> None:
    deltas = [{"type": "response.output_text.delta", "delta": piece} for piece in ("Sun", "ny.")]
    bare = [*deltas, {"type": "response.completed", "response": {"status": "completed"}}]
    full = [*deltas, {"type": "response.completed", "response": {"output": [message("Sunny!"), CALL]}}]
    texts = [WIRE.said(b"".join(encode(orjson.dumps(doc)) for doc in docs), stream=True) for docs in (bare, full)]
    assert [(said.text, len(said.tool_calls)) for said in texts] == [("Sunny.", 0), ("Sunny!", 1)]


def test_a_compaction_counts_what_it_used_and_is_never_changed() -> None:
    body = orjson.dumps(
        {
            "object": "response.compaction",
            "output": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "3, 3?"}]},
                {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
            ],
            "usage": {"input_tokens": 154, "output_tokens": 177, "total_tokens": 331},
        }
    )
    assert WIRE.said(body, stream=False) == Said(usage=Usage(154, 177))
    reply = Reply(200, (("content-type", "application/json"),), body)
    for edit in (Edit(text=lambda _: "No.", finish="refusal"), Edit(max_tokens=0), Edit(drop_tool_calls=True)):
        assert read(WIRE.edit(reply, edit)) == body


def test_a_conversation_is_read_turn_by_turn() -> None:
    body = {
        "model": "gpt-5",
        "stream": True,
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Weather"}, {"type": "input_image"}]},
            REASONING,
            message("Let me look."),
            CALL,
            {"type": "custom_tool_call", "call_id": "c2", "name": "sql", "input": "SELECT 1"},
            {"type": "function_call_output", "call_id": "call_weather", "output": "sun"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "1"}]},
        ],
        "tools": [{"type": "function", "name": "weather"}, {"type": "custom", "name": "sql"}, {"type": "web_search"}],
    }
    calls = (ToolCall("call_weather", "weather", '{"city":"Paris"}'), ToolCall("c2", "sql", "SELECT 1"))
    assert WIRE.asked(orjson.dumps(body)) == Asked(
        "gpt-5",
        True,
        (
            Turn("system", "Be brief."),
            Turn("user", "Weather"),
            Turn("assistant", "Let me look.", calls),
            Turn("tool", "", (), (ToolResult("call_weather", "weather", "sun"), ToolResult("c2", "sql", "1"))),
        ),
        ("weather", "sql"),
    )


def test_a_result_whose_call_is_with_the_provider_has_no_name() -> None:
    item = {"type": "function_call_output", "call_id": "c1", "output": "sun"}
    body = {"model": "gpt-5", "previous_response_id": "resp_1", "input": [item]}
    assert WIRE.asked(orjson.dumps(body)).turns == (Turn("tool", "", (), (ToolResult("c1", "", "sun"),)),)
    assert WIRE.asked(b'{"model":"m","input":"hi"}').turns == (Turn("user", "hi"),)


@pytest.mark.parametrize("make", [whole, streamed])
def test_a_reply_is_read_without_reasoning_and_what_openai_ran(make) -> None:
    body = make(REASONING, SEARCH, message("Sunny ", "it is."), CALL)
    call = ToolCall("call_weather", "weather", '{"city":"Paris"}')
    assert said(body) == Said("Sunny it is.", (call,), "completed", Usage(7, 50), "gpt-5")


def test_a_stream_is_read_as_far_as_it_came() -> None:
    body = streamed(message("Sunny it is."))
    cut = body[: body.index(b"response.output_text.done") - 7]
    assert said(cut) == Said("Sunny it is.", model="gpt-5", complete=False)


def test_what_was_never_streamed_is_read_from_the_end() -> None:
    last = documents(streamed(message("Sunny."), CALL))[-1]
    assert (said(encode(orjson.dumps(last), name=last["type"])).text) == "Sunny."
    done = [doc for doc in documents(streamed(message("Sunny."))) if doc["type"] != "response.output_text.delta"]
    assert said(b"".join(encode(orjson.dumps(doc), name=doc["type"]) for doc in done)).text == "Sunny."


@pytest.mark.parametrize(
    ("doc", "error"),
    [
        ({"error": {"message": "no", "type": "x"}}, "no"),
        ({**response(status="failed"), "error": {"code": "server_error", "message": "sorry"}}, "sorry"),
        ({"detail": "not here"}, "not here"),
        (response(), None),
    ],
)
def test_errors_are_read(doc: object, error: str | None) -> None:
    assert WIRE.said(orjson.dumps(doc), stream=True).error == error


def test_a_stream_may_fail() -> None:
    failed = {"type": "response.failed", "response": {**response(status="failed"), "error": {"message": "sorry"}}}
    read_as = said(encode(orjson.dumps(failed), name="response.failed"))
    assert (read_as.error, read_as.finish, read_as.complete) == ("sorry", "failed", True)
    broken = said(b'event: error\ndata: {"type":"error","message":"lost"}\n\n')
    assert (broken.error, broken.complete) == ("lost", False)
    assert WIRE.said(b'{"output"', stream=False) == Said(complete=False)


@pytest.mark.parametrize("kind", [[], {}, 1, None])
def test_a_type_of_the_wrong_type_is_nothing(kind: object) -> None:
    assert said(orjson.dumps(response({"type": kind}))).tool_calls == ()
    assert WIRE.asked(orjson.dumps({"input": [{"type": kind}]})).turns == ()


def test_errors_are_openai_s() -> None:
    call = Call("POST", URL, body=b'{"model":"gpt-5","input":"hi"}')
    reply = WIRE.failure(Failure("rate_limit"), call)
    assert reply.status == 429
    assert "gpt-5" in orjson.loads(read(reply))["error"]["message"]
