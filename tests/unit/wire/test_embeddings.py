import orjson
import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Failure, Said, Usage
from flakestorm.wire.embeddings import Embeddings

WIRE = Embeddings()
GOOGLE = "https://generativelanguage.googleapis.com/v1beta/models"


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        ("https://api.openai.com/v1/embeddings", {"model": "e-3", "input": "x"}, "e-3"),
        ("https://x.openai.azure.com/openai/deployments/my%20e/embeddings?api-version=1", {"input": ["x"]}, "my e"),
        (f"{GOOGLE}/gemini-embedding-2:batchEmbedContents?key=k", {"requests": []}, "gemini-embedding-2"),
        (f"{GOOGLE}/gemini-embedding-2:embedContent", {"content": {}}, "gemini-embedding-2"),
        ("https://a.test/publishers/google/models/text-embedding-005:predict", {}, "text-embedding-005"),
        ("https://a.test/publishers/google/models/imagen-4:predict", {}, None),
        ("https://api.cohere.com/v2/embed", {"model": "embed-v4.0", "texts": ["x"]}, "embed-v4.0"),
        ("http://127.0.0.1:11434/api/embed", {"model": "nomic", "input": "x"}, "nomic"),
        ("http://127.0.0.1:11434/api/embeddings", {"model": "nomic", "prompt": "x"}, "nomic"),
        ("https://my.test/embeddings", {"model": "m"}, None),
        ("https://my.test/embeddings", {"input": "x"}, None),
        ("https://my.test/v1/chat", {"model": "m", "input": "x"}, None),
    ],
)
def test_a_request_is_known_by_its_path_and_what_is_to_be_embedded(url: str, body: object, model: str | None) -> None:
    call = Call("POST", url, body=orjson.dumps(body))
    assert WIRE.model_of(call) == model
    assert WIRE.recognises(call) is (model is not None)
    assert not WIRE.recognises(Call("GET", url, body=call.body))


def test_what_was_counted_is_read() -> None:
    openai = (
        b'{"object":"list","data":[{"embedding":[0.1]}],"model":"e-3","usage":{"prompt_tokens":5,"total_tokens":5}}'
    )
    assert WIRE.said(openai, stream=False) == Said(usage=Usage(5), model="e-3")
    assert WIRE.said(b'{"model":"n","embeddings":[[1]],"prompt_eval_count":3}', stream=False).usage == Usage(3)
    assert WIRE.said(b'{"error":{"message":"no"}}', stream=False).error == "no"
    assert WIRE.said(b'{"embeddings"', stream=False) == Said(complete=False)
    assert WIRE.asked(b'{"model":"e-3","input":"x"}').model == "e-3"


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("https://api.openai.com/v1/embeddings", {"message", "type", "param", "code"}),
        (f"{GOOGLE}/e:embedContent", {"code", "message", "status", "details"}),
        ("http://127.0.0.1:11434/api/embed", None),
    ],
)
def test_errors_are_those_of_the_provider(url: str, shape: set[str] | None) -> None:
    reply = WIRE.failure(Failure("rate_limit"), Call("POST", url, body=b'{"model":"m","input":"x"}'))
    error = orjson.loads(read(reply))["error"]
    assert reply.status == 429
    assert isinstance(error, str) if shape is None else set(error) == shape


def test_nothing_in_it_can_be_edited() -> None:
    reply = Reply(200, (), b'{"data":[]}')
    assert WIRE.edit(reply, Edit(text=str.upper, max_tokens=0)) is reply
