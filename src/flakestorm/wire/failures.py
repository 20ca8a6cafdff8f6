"""What every provider's error reply has in common: JSON, a request id, and how long to wait."""

from __future__ import annotations

import hashlib
from http import HTTPStatus

from flakestorm.core.call import Call, Headers, Reply
from flakestorm.wire.shape import Doc, dump

__all__ = ["error_reply", "request_token", "retry_headers"]


def error_reply(status: int, document: Doc | list[Doc], *headers: tuple[str, str]) -> Reply:
    """A whole JSON reply with these further headers."""
    body = dump(document)
    common = (("content-type", "application/json"), ("content-length", str(len(body))))
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:  # 529 and its like have no registered phrase
        reason = ""
    return Reply(status, (*common, *headers), body, reason=reason)


def request_token(call: Call) -> str:
    """32 hexadecimal characters for a request id: the same call at the same site always gets the same ones."""
    state = hashlib.blake2b(f"{call.method} {call.url} {call.site}\n".encode("utf-8", "surrogatepass"), digest_size=16)
    state.update(call.body)
    return state.hexdigest()


def retry_headers(retry_after_ms: int | None) -> Headers:
    """The headers that ask a client to wait; none when nothing is to be said.

    `retry-after` may only hold whole seconds, so it is rounded up for clients that know nothing better. The SDKs of
    OpenAI and Anthropic look at `retry-after-ms` first and wait exactly that long.
    """
    if retry_after_ms is None:
        return ()
    return (("retry-after-ms", str(retry_after_ms)), ("retry-after", str(-(-retry_after_ms // 1000))))
