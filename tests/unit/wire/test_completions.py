import orjson
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Failure, Said
from flakestorm.wire.completions import Completions

WIRE = Completions()
OPENAI, COHERE = "https://api.openai.com/v1/completions", "https://api.cohere.com/v2/chat"


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        (OPENAI, {"model": "gpt-3.5-turbo-instruct", "prompt": "x"}, "gpt-3.5-turbo-instruct"),
        ("https://x.openai.azure.com/openai/deployments/my%20d/completions?api-version=1", {"prompt": "x"}, "my d"),
        (COHERE, {"model": "command-a", "messages": [{"role": "user", "content": "x"}]}, "command-a"),
        ("https://api.cohere.com/v1/chat", {"model": "command-r", "message": "x"}, "command-r"),
        ("https://api.openai.com/v1/chat/completions", {"model": "gpt-4o", "prompt": "x"}, None),
        (OPENAI, {"model": "gpt-4o"}, None),
        (COHERE, {"model": "command-a", "prompt": "x"}, None),
        ("https://my.test/v2/chat", {"message": "hello, agent"}, None),
        ("https://my.test/completions", b"not JSON", None),
    ],
)
def test_a_request_is_known_by_its_path_and_what_is_asked(url: str, body: object, model: str | None) -> None:
    call = Call("POST", url, body=body if isinstance(body, bytes) else orjson.dumps(body))
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)
    assert not WIRE.recognises(Call("GET", url, body=call.body))


def test_of_an_answer_the_model_and_the_error_are_read() -> None:
    assert WIRE.said(b'{"id":"c","model":"m","choices":[{"text":"x"}]}', stream=False) == Said(model="m")
    assert WIRE.said(b'{"error":{"message":"no"}}', stream=False).error == "no"
    assert WIRE.said(b'{"id":"c","message":"no"}', stream=False).error == "no"
    assert WIRE.said(b'{"id":"c","message":{"role":"assistant"}}', stream=False).error is None
    assert WIRE.said(b"data: {}", stream=True) == Said()
    asked = WIRE.asked(b'{"model":"m","prompt":"x","stream":true}')
    assert (asked.model, asked.stream) == ("m", True)


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server_error", "timeout"])
def test_errors_are_those_of_the_provider(kind: str) -> None:
    failure = Failure(kind)  # type: ignore[arg-type]
    openai = WIRE.failure(failure, Call("POST", OPENAI, body=b'{"model":"m","prompt":"x"}'))
    cohere = WIRE.failure(failure, Call("POST", COHERE, body=b'{"model":"m","messages":[1]}'))
    assert set(orjson.loads(read(openai))["error"]) == {"message", "type", "param", "code"}
    assert set(orjson.loads(read(cohere))) == {"message"}
    assert cohere.status in (429, 500, 503)


def test_what_is_said_passes_as_it_is() -> None:
    reply = Reply(200, (), b'{"choices":[]}')
    assert WIRE.edit(reply, Edit(text=str.upper, max_tokens=0)) is reply
    assert WIRE.framing(b"data: ", "text/event-stream") is None
    call = Call("POST", OPENAI, body=b"{}")
    assert WIRE.failure_event(Failure("overloaded"), call, after=1) is None
    assert WIRE.blocked(call) is None
