import orjson
import pytest

from flakestorm.core.call import Call, Reply, header
from flakestorm.core.stream import read
from flakestorm.wire.base import Failure
from flakestorm.wire.eventstream import messages
from flakestorm.wire.provider_errors import (
    aws_error,
    aws_error_message,
    google_error,
    google_error_object,
    ollama_error,
    ollama_error_document,
    openai_blocked,
    openai_error,
    openai_error_object,
)

CALL = Call("POST", "https://provider.test/v1", body=b"{}")
KINDS = ("rate_limit", "overloaded", "server_error", "timeout")


def openai(failure: Failure) -> Reply:
    return openai_error(failure, model="gpt", call=CALL)


def google(failure: Failure) -> Reply:
    return google_error(failure, model="gemini", call=CALL)


def aws(failure: Failure) -> Reply:
    return aws_error(failure, call=CALL)


SPELLED = {
    openai: [(429, "rate_limit_exceeded"), (503, "server_is_overloaded"), (500, None), (504, 504)],
    google: [(429, "RESOURCE_EXHAUSTED"), (503, "UNAVAILABLE"), (500, "INTERNAL"), (504, "DEADLINE_EXCEEDED")],
    aws: [
        (429, "ThrottlingException"),
        (503, "ServiceUnavailableException"),
        (500, "InternalServerException"),
        (408, "ModelTimeoutException"),
    ],
    ollama_error: [(429, None), (503, None), (500, None), (504, None)],
}


@pytest.mark.parametrize("spell", SPELLED, ids=lambda spell: spell.__name__)
def test_each_failure_is_spelled_as_the_provider_does(spell) -> None:
    for kind, (status, code) in zip(KINDS, SPELLED[spell], strict=True):
        reply = spell(Failure(kind))
        doc = orjson.loads(read(reply))
        assert (reply.status, header(reply.headers, "content-type")) == (status, "application/json")
        if spell is openai:
            assert (doc["error"]["code"], bool(doc["error"]["message"])) == (code, True)
        elif spell is google:
            assert (doc["error"]["code"], doc["error"]["status"]) == (status, code)
        elif spell is aws:
            assert (header(reply.headers, "x-amzn-errortype") or "").split(":")[0] == code
            assert list(doc) == ["message"]
        else:
            assert isinstance(doc["error"], str)


@pytest.mark.parametrize("spell", SPELLED, ids=lambda spell: spell.__name__)
def test_the_caller_s_own_status_words_and_wait_are_used(spell) -> None:
    reply = spell(Failure("rate_limit", status=418, message="so it is", retry_after_ms=1500))
    assert reply.status == 418
    assert b"so it is" in read(reply)
    assert header(reply.headers, "retry-after") == "2" or b'"retryDelay":"1.5s"' in read(reply)


def test_an_array_holds_its_error() -> None:
    doc = orjson.loads(read(google_error(Failure("overloaded"), model="m", call=CALL, listed=True)))
    assert [error["error"]["status"] for error in doc] == ["UNAVAILABLE"]


def test_a_request_has_one_id_and_another_request_another() -> None:
    first, again = aws(Failure("timeout")), aws(Failure("timeout"))
    other = aws_error(Failure("timeout"), call=Call("POST", CALL.url, body=b"[]"))
    ids = [header(reply.headers, "x-amzn-requestid") for reply in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]
    assert [len(part) for part in (ids[0] or "").split("-")] == [8, 4, 4, 4, 12]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_states_the_same_error_as_a_reply(kind) -> None:
    failure = Failure(kind, message="so it is", retry_after_ms=50)
    assert orjson.loads(read(openai(failure)))["error"] == openai_error_object(failure, model="gpt")
    assert orjson.loads(read(google(failure)))["error"] == google_error_object(failure, model="gemini")
    assert orjson.loads(read(ollama_error(failure))) == ollama_error_document(failure)
    [(name, payload)] = messages(aws_error_message(failure))
    assert payload == read(aws(failure))
    assert (header(aws(failure).headers, "x-amzn-errortype") or "").lower().startswith(name.lower() + ":")
    assert name[0].islower()


@pytest.mark.parametrize(
    ("host", "code"), [("api.openai.com", "invalid_prompt"), ("x.openai.azure.com", "content_filter")]
)
@pytest.mark.parametrize("message", ["", "not that"])
def test_a_prompt_is_stopped_by_the_filter_of_whoever_is_asked(host: str, code: str, message: str) -> None:
    reply = openai_blocked(Call("POST", f"https://{host}/v1/responses"), message)
    error = orjson.loads(read(reply))["error"]
    assert (reply.status, error["code"]) == (400, code)
    assert error["message"] == message if message else len(error["message"]) > 60
    assert (header(reply.headers, "x-request-id") or "").startswith("req_")
    if code == "content_filter":
        assert error["innererror"]["code"] == "ResponsibleAIPolicyViolation"
        assert error["innererror"]["content_filter_result"]["jailbreak"]["filtered"] is True
