from __future__ import annotations

import orjson
import pytest

from flakestorm.core.call import Call, header
from flakestorm.core.stream import read
from flakestorm.wire.base import Failure
from flakestorm.wire.kin import has_refusals, is_azure, rate_limited
from flakestorm.wire.provider_errors import openai_error

AZURE = "https://mine.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21"
MISTRAL = "https://api.mistral.ai/v1/chat/completions"
GROQ = "https://api.groq.com/openai/v1/chat/completions"
OPENAI = "https://api.openai.com/v1/chat/completions"


@pytest.mark.parametrize(
    ("url", "azure"),
    [
        ("https://mine.openai.azure.com/openai/v1/chat/completions", True),
        ("https://mine.cognitiveservices.azure.com/openai/v1/responses", True),
        ("https://mine.services.ai.azure.com/models/chat/completions", True),
        ("http://127.0.0.1:80/openai/deployments/gpt-4o/chat/completions?api-version=1", True),
        ("https://api.openai.com/v1/chat/completions", False),
        ("https://openai.azure.com.test/v1/chat/completions", False),
        ("https://[bad/v1", False),
    ],
)
def test_azure_is_known_by_its_addresses(url: str, azure: bool) -> None:
    assert is_azure(url) is azure


@pytest.mark.parametrize(
    ("url", "refusals"),
    [
        (OPENAI, True),
        (AZURE, True),
        ("http://127.0.0.1/v1", True),
        (MISTRAL, False),
        (GROQ, False),
        ("http://[x", True),
    ],
)
def test_who_has_a_place_for_refusals(url: str, refusals: bool) -> None:
    assert has_refusals(url) is refusals
    assert has_refusals("https://notmistral.ai/v1/chat/completions")


def limited(url: str, **failure: object) -> dict:
    call = Call("POST", url, body=b"{}")
    reply = openai_error(Failure("rate_limit", retry_after_ms=1500, **failure), model="m", call=call)  # type: ignore[arg-type]
    assert (reply.status, header(reply.headers, "retry-after-ms")) == (429, "1500"), "whoever it is, the client waits"
    doc: dict = orjson.loads(read(reply))
    return doc


def test_each_says_in_its_own_words_that_it_is_asked_too_often() -> None:
    azure = limited(AZURE)["error"]
    assert azure.keys() == {"code", "message"}
    assert azure["code"] == "429"
    assert "ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21" in azure["message"]
    assert "retry after 2 seconds" in azure["message"]
    assert "Embeddings_Create" in limited(AZURE.replace("chat/completions", "embeddings"))["error"]["message"]

    mistral = {"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "param": None}
    assert limited(MISTRAL) == {**mistral, "code": "1300", "raw_status_code": 429}

    groq = limited(GROQ)["error"]
    assert (groq["type"], groq["code"]) == ("requests", "rate_limit_exceeded")
    assert "`m`" in groq["message"]
    assert "1.5s" in groq["message"]
    assert "platform.openai.com" in limited(OPENAI)["error"]["message"]


@pytest.mark.parametrize("url", [AZURE, GROQ])
def test_words_of_the_user_take_their_place(url: str) -> None:
    assert limited(url, message="Not now.")["error"]["message"] == "Not now."
    assert limited(MISTRAL, message="Not now.")["message"] == "Not now."


def test_openai_s_own_is_left_to_openai() -> None:
    assert rate_limited(Failure("rate_limit"), model="m", wait="1s", url=OPENAI) is None
    assert orjson.loads(read(openai_error(Failure("overloaded"), model="m", call=Call("POST", MISTRAL))))["error"]
