"""Embeddings, of any provider: calls to a model that answers with numbers.

Such a call is known and named by its model, and what it counted is read. There is nothing said in it that a fault could
change, so `edit` leaves it alone; the provider's errors can be played on it like on any other model call.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Failure, Said, Usage
from flakestorm.wire.paths import path_of
from flakestorm.wire.provider_errors import google_error, ollama_error, openai_error
from flakestorm.wire.shape import Doc, error_of, number, obj, outline, parse, string
from flakestorm.wire.unread import Unread

__all__ = ["Embeddings"]

_GOOGLE = re.compile(r"/models/([^/]+):(?:embedContent|batchEmbedContents|predict)$")
_AZURE = re.compile(r"/deployments/([^/]+)/embeddings$")
_OLLAMA = ("/api/embed", "/api/embeddings")
_COHERE = ("/v1/embed", "/v2/embed")
_ASKED_IN = ("input", "inputs", "prompt", "texts", "images")


class Embeddings(Unread):
    """The `embeddings` wire. It holds no state; one object serves every run."""

    name = "embeddings"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if it does not ask for embeddings. Reads the body once at most."""
        if call.method != "POST":
            return None
        path = path_of(call)
        if google := _GOOGLE.search(path):
            model = unquote(google[1])
            return model if not path.endswith(":predict") or "embed" in model else None
        if not path.endswith(("/embeddings", *_OLLAMA, *_COHERE)):
            return None
        body = outline(call.body) or {}
        if not any(body.get(key) for key in _ASKED_IN):
            return None
        azure = _AZURE.search(path)
        return string(body.get("model")) or (unquote(azure[1]) if azure else None)

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST to one of the providers' paths for embeddings, with something to embed."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """The model; what is embedded is no conversation."""
        return Asked(string((parse(body) or {}).get("model")))

    def said(self, body: bytes, *, stream: bool) -> Said:
        """What it counted and which model answered, or the error."""
        doc = parse(body)
        if doc is None:
            return Said(complete=False)
        counted = number(obj(doc.get("usage")).get("prompt_tokens"))
        counted = number(doc.get("prompt_eval_count")) if counted is None else counted
        usage = None if counted is None else Usage(counted)
        return Said(usage=usage, model=string(doc.get("model")), error=_error(doc))

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error of the provider whose path this is, OpenAI's where many share one."""
        path, model = path_of(call), self.model_of(call) or "this model"
        if _GOOGLE.search(path):
            return google_error(failure, model=model, call=call)
        if path.endswith(_OLLAMA):
            return ollama_error(failure)
        return openai_error(failure, model=model, call=call)


def _error(doc: Doc) -> str | None:
    return error_of(doc) or string(doc.get("message")) or None
