"""How alike two texts are in meaning: by sentence-transformers here, or by the configured model's embeddings.

Both give a vector for each text; the cosine of two vectors, below 0 taken as 0, is the likeness. A text is measured
once, however often it is compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from math import isfinite, sqrt
from threading import Lock
from typing import Any
from urllib.parse import quote

import orjson

from flakestorm.config.model import Model
from flakestorm.errors import ConfigError, MissingExtra, ModelFailed
from flakestorm.models.client import ModelClient

__all__ = ["LOCAL_MODEL", "LocalEmbedder", "ModelEmbedder", "cosine"]

LOCAL_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_LIBRARY = "sentence_transformers"
_KEPT = 10_000
_USUAL = {"openai": "text-embedding-3-small", "google": "gemini-embedding-001"}
"""The embedding model of a provider whose chat models have none; one whose name says `embed` is taken as it is."""


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors, 0 to 1; 0 where one of them is empty or all zero.

    Raises:
        ValueError: they are not of one length, or hold what is no number.
    """
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    length = sqrt(sum(a * a for a in one)) * sqrt(sum(b * b for b in other))
    found = dot / length if length else 0.0
    if not isfinite(found):
        raise ValueError("a vector holds what is no number")
    return min(max(found, 0.0), 1.0)


class LocalEmbedder:
    """sentence-transformers in this process, loaded when the first text is measured.

    Raises:
        MissingExtra: it is not installed.
    """

    def __init__(self) -> None:
        if find_spec(_LIBRARY) is None:
            raise MissingExtra("similarity by meaning ('measure: semantic')", "semantic")
        self._model: Any = None
        self._lock = Lock()
        self._known: dict[str, Sequence[float]] = {}

    async def alike(self, one: str, other: str) -> float:
        """How alike two texts are, 0 to 1.

        Raises:
            ModelFailed: the model cannot be loaded, or failed.
        """
        return await asyncio.to_thread(self._alike, one, other)

    async def close(self) -> None:
        """Forget the model."""
        self._model = None

    def _alike(self, one: str, other: str) -> float:
        with self._lock:
            try:
                if self._model is None:
                    from importlib import import_module

                    self._model = import_module(_LIBRARY).SentenceTransformer(LOCAL_MODEL)
                if len(self._known) > _KEPT:
                    self._known.clear()
                new = [text for text in dict.fromkeys((one, other)) if text not in self._known]
                if new:
                    vectors = [[float(x) for x in vector] for vector in self._model.encode(new)]
                    self._known |= dict(zip(new, vectors, strict=True))
                return cosine(self._known[one], self._known[other])
            except Exception as error:  # a library of a million lines, and a download
                raise ModelFailed(f"{LOCAL_MODEL} could not measure: {type(error).__name__}: {error}") from error


class ModelEmbedder:
    """The embeddings of the configured model's provider.

    Args:
        model: the config's block.

    Raises:
        ConfigError: the provider has no embeddings.
    """

    def __init__(self, model: Model) -> None:
        if model.provider not in ("ollama", "openai", "google"):
            raise ConfigError(
                f"'measure: model' asks for embeddings, and the provider {model.provider!r} has none; use ollama, "
                "openai or google, or 'measure: semantic'",
                key="model.provider",
            )
        self._provider, self._client = model.provider, ModelClient(model)
        self._name = model.name if "embed" in model.name else _USUAL.get(model.provider, model.name)
        self._known: dict[str, Sequence[float]] = {}

    async def alike(self, one: str, other: str) -> float:
        """How alike two texts are, 0 to 1.

        Raises:
            ModelFailed: the provider gave no vectors.
        """
        new = [text for text in dict.fromkeys((one, other)) if text not in self._known]
        found = dict(self._known)
        if new:
            path, asked = _request(self._provider, self._name, new)
            reply = await self._client.send(self._client.url(path), asked)
            found |= dict(zip(new, self._vectors(reply, len(new)), strict=True))
            self._known = {} if len(self._known) > _KEPT else found
        try:
            return cosine(found[one], found[other])
        except ValueError as error:
            raise ModelFailed(f"the embeddings of {self._name!r} cannot be compared: {error}") from error

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.close()

    def _vectors(self, reply: bytes, wanted: int) -> list[list[float]]:
        try:
            found = _read(orjson.loads(reply))
        except (ValueError, KeyError, TypeError) as error:
            raise ModelFailed(f"the embeddings of {self._name!r} cannot be read: {type(error).__name__}") from error
        if len(found) != wanted:
            raise ModelFailed(f"{self._name!r} gave {len(found)} embeddings for {wanted} texts")
        return found


def _request(provider: str, name: str, texts: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    """Where embeddings are asked for, and how."""
    if provider == "google":
        parts = [{"model": f"models/{name}", "content": {"parts": [{"text": text}]}} for text in texts]
        return f"/v1beta/models/{quote(name, safe='')}:batchEmbedContents", {"requests": parts}
    path = "/api/embed" if provider == "ollama" else "/embeddings"
    return path, {"model": name, "input": list(texts)}


def _read(document: Any) -> list[list[float]]:
    """The vectors in a reply of any of the three."""
    rows = document["data"] if "data" in document else document["embeddings"]
    if rows and isinstance(rows[0], dict) and "index" in rows[0]:
        rows = sorted(rows, key=lambda row: int(row["index"]))
    vectors = [(row.get("embedding") or row["values"]) if isinstance(row, dict) else row for row in rows]
    return [[float(x) for x in vector] for vector in vectors]
