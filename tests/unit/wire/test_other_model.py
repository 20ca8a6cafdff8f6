import gzip
import json

import pytest

from flakestorm.core.call import Call
from flakestorm.errors import Misuse
from flakestorm.wire.other_model import with_model


def test_a_model_in_the_body_is_replaced_and_nothing_else() -> None:
    call = Call("POST", "https://api.openai.com/v1/chat/completions", body=b'{ "model" : "gpt-4o",  "messages": [] }')
    asked = with_model(call, "gpt-4o-mini")
    assert (asked.url, asked.body) == (call.url, b'{ "model" : "gpt-4o-mini",  "messages": [] }')


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://g.test/v1beta/models/gemini-2.5-pro:generateContent?alt=sse", "/models/new:generateContent?alt=sse"),
        ("https://a.test/openai/deployments/old/chat/completions?api-version=1", "/deployments/new/chat/completions"),
        ("https://b.test/model/anthropic.claude%3A0/converse", "/model/new/converse"),
    ],
)
def test_a_model_in_the_path_is_replaced(url: str, expected: str) -> None:
    assert expected in with_model(Call("POST", url, body=json.dumps({"contents": []}).encode()), "new").url


def test_a_call_without_a_model_is_refused() -> None:
    with pytest.raises(Misuse, match="names no model"):
        with_model(Call("POST", "https://api.test/v1/chat", body=b"{}"), "new")


def test_an_encoded_body_is_sent_plain() -> None:
    body = gzip.compress(b'{"model":"old"}')
    call = Call("POST", "https://api.test/v1/messages", (("Content-Encoding", "gzip"), ("x", "1")), body)
    asked = with_model(call, "new")
    assert (asked.headers, asked.body) == ((("x", "1"),), b'{"model":"new"}')
