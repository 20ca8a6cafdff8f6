"""Answers in protocols that are named and not understood: OpenAI's legacy completions, and Cohere's chat.

Such a call is known for what it is and has its model's name, so schedules, counts and sites speak of it; what is said
in it is not read, and `edit` leaves it alone. The provider's errors can be played on it like on any other model call.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Asked, Failure, Said
from flakestorm.wire.failures import error_reply, retry_headers
from flakestorm.wire.provider_errors import openai_error
from flakestorm.wire.shape import Doc, obj, outline, parse, string
from flakestorm.wire.unread import Unread

__all__ = ["Completions"]

_LEGACY = re.compile(r"(?<!/chat)/completions$")
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/completions$")
_COHERE = re.compile(r"/v[12]/chat$")
_COHERE_FAILURES = {
    "rate_limit": (429, "You are past the per minute request limit, please wait and try again later."),
    "overloaded": (503, "service unavailable, please try again later"),
    "server_error": (500, "internal server error, this has been reported to our developers"),
}


class Completions(Unread):
    """The `completions` wire. It holds no state; one object serves every run."""

    name = "completions"

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if it is not one of these protocols. Reads the body once at most."""
        path = _path(call) if call.method == "POST" else ""
        legacy = _LEGACY.search(path)
        if not legacy and not _COHERE.search(path):
            return None
        body = outline(call.body) or {}
        if not (body.get("prompt") if legacy else body.get("messages") or body.get("message")):
            return None
        deployed = _DEPLOYMENT.search(path)
        return string(body.get("model")) or (unquote(deployed[1]) if deployed else None)

    def recognises(self, call: Call) -> bool:
        """Whether this is a POST of a prompt to `.../completions`, or of messages to `/v1/chat` or `/v2/chat`."""
        return self.model_of(call) is not None

    def asked(self, body: bytes) -> Asked:
        """The model; the rest is not read."""
        doc = parse(body) or {}
        return Asked(string(doc.get("model")), doc.get("stream") is True)

    def said(self, body: bytes, *, stream: bool) -> Said:
        """Which model answered, or the error; what it said is not read."""
        doc = parse(body) or {}
        return Said(model=string(doc.get("model")), error=_error(doc))

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error of the provider whose path this is."""
        if not _COHERE.search(_path(call)):
            return openai_error(failure, model=self.model_of(call) or "this model", call=call)
        status, message = _COHERE_FAILURES.get(failure.kind, _COHERE_FAILURES["server_error"])
        said = {"message": failure.message or message}
        return error_reply(failure.status or status, said, *retry_headers(failure.retry_after_ms))


def _path(call: Call) -> str:
    return call.url.partition("?")[0].rstrip("/")


def _error(doc: Doc) -> str | None:
    if said := string(obj(doc.get("error")).get("message")):
        return said
    return string(doc.get("message")) or None if doc.keys() <= {"message", "id"} else None
