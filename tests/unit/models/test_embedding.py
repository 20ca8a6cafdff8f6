"""Meaning, measured by a stub of the library and by scripted providers; no model is loaded here."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.config.model import Model
from flakestorm.errors import MissingExtra, Misuse, ModelFailed
from flakestorm.models.embedding import LocalEmbedder, ModelEmbedder, cosine
from upstream import Upstream, document

STUB = """
loaded = 0

class SentenceTransformer:
    def __init__(self, name):
        global loaded
        loaded += 1

    def encode(self, texts):
        if "broken" in texts:
            raise RuntimeError("no memory")
        return [[float(len(text)), 1.0 if "not" in text else 0.0] for text in texts]
"""


@given(st.lists(st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-3), min_size=1, max_size=8))
def test_a_vector_is_like_itself(vector) -> None:
    assert cosine(vector, vector) == pytest.approx(1.0 if any(vector) else 0.0, abs=1e-6)


def test_opposites_are_not_less_than_not_alike() -> None:
    assert cosine([1, 0], [-1, 0]) == 0
    with pytest.raises(ValueError, match="no number"):
        cosine([float("nan")], [1])
    with pytest.raises(ValueError):
        cosine([1], [1, 2])


@pytest.mark.skipif("sentence_transformers" in sys.modules, reason="the library is in use here")
def test_without_the_library_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setattr("flakestorm.models.embedding._LIBRARY", "sentence_transformers_that_nobody_has")
    with pytest.raises(MissingExtra, match=r"pip install 'flakestorm\[semantic\]'"):
        LocalEmbedder()


async def test_the_library_is_loaded_once_and_its_failure_is_said(tmp_path, monkeypatch) -> None:
    (tmp_path / "stub_transformers.py").write_text(STUB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("flakestorm.models.embedding._LIBRARY", "stub_transformers")
    local = LocalEmbedder()
    assert await local.alike("four", "word") == 1
    assert await local.alike("four", "not a word") < 1
    assert sys.modules.pop("stub_transformers").loaded == 1
    with pytest.raises(ModelFailed, match="RuntimeError: no memory"):
        await local.alike("broken", "word")
    await local.close()


REPLIES = {
    "ollama": ("/api/embed", "", {"embeddings": [[1, 0], [1, 1]]}),
    "openai": (
        "/v1/embeddings",
        "/v1",
        {"data": [{"index": 1, "embedding": [1, 1]}, {"index": 0, "embedding": [1, 0]}]},
    ),
    "google": (
        "/v1beta/models/gemini-embedding-001:batchEmbedContents",
        "",
        {"embeddings": [{"values": [1, 0]}, {"values": [1, 1]}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("provider", REPLIES)
async def test_each_provider_is_asked_in_its_own_words_and_once_for_each_text(provider) -> None:
    path, base, reply = REPLIES[provider]
    with Upstream() as up:
        up.reply(path, document(reply))
        embedder = ModelEmbedder(Model(provider=provider, name="m", base_url=up.url + base, api_key="k"))
        assert await embedder.alike("a", "b") == pytest.approx(0.7071, abs=1e-4)
        assert await embedder.alike("b", "a") == pytest.approx(0.7071, abs=1e-4)
        await embedder.close()
        (request,) = up.requests
    assert json.loads(request.body)


@pytest.mark.parametrize("reply", [{}, {"data": []}, {"data": [{"index": 0}]}, {"embeddings": [[1], ["x"]]}, []])
async def test_a_reply_that_holds_no_vectors_is_a_failure(reply) -> None:
    with Upstream() as up:
        up.reply("/v1/embeddings", document(reply))
        embedder = ModelEmbedder(Model(provider="openai", name="m", base_url=f"{up.url}/v1", api_key="k"))
        with pytest.raises(ModelFailed):
            await embedder.alike("a", "b")
        await embedder.close()


def test_a_provider_without_embeddings_is_refused() -> None:
    with pytest.raises(Misuse, match="has none"):
        ModelEmbedder(Model(provider="anthropic", name="claude"))
