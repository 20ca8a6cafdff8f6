"""What the head of a request says: which header fields tell what is asked, and who asks."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import compress, count
from operator import ne

from flakestorm.core.call import Headers
from flakestorm.tape.naming import is_secret_header

__all__ = ["credential", "is_silent", "says_something", "says_the_same"]

_SILENT = frozenset(
    word
    for words in (
        "accept-encoding accept-language age alt-svc authority baggage connection content-encoding content-length",
        "cookie date expect forwarded host http2-settings idempotency-key keep-alive max-forwards mcp-session-id",
        "origin proxy-authorization proxy-connection referer sentry-trace te trailer traceparent tracestate",
        "transfer-encoding upgrade user-agent via amz-sdk-request x-amz-content-sha256 x-amz-date",
        "x-cloud-trace-context",
    )
    for word in words.split()
)
_SILENT_PARTS = re.compile(
    r"stainless|request-?id|correlation-?id|trace-?id|span-?id|idempotency|user-agent|api-client|invocation-id"
    r"|client-version|sdk-version|forwarded|retry-count|b3-|^sec-|^cf-|^x-flakestorm|server-timeout"
)


def says_something(headers: Headers) -> tuple[tuple[str, str], ...]:
    """The fields that say what is asked, sorted: behaviour stays; credentials, dates, versions, lengths do not."""
    kept: list[tuple[str, str]] = []
    for name, value in headers:
        if is_silent(name):
            continue
        low = name.lower()
        if low in ("content-type", "accept"):
            value = ",".join(one.partition(";")[0].strip().lower() for one in value.split(","))
        kept.append((low, value.strip()))
    return tuple(sorted(kept))


def says_the_same(now: Headers, before: Headers) -> bool:
    """Whether these fields are those, in order, but for values that say nothing about what is asked or who asks."""
    if len(now) != len(before):
        return False
    for at in compress(count(), map(ne, now, before)):
        name = now[at][0]
        if name != before[at][0] or not is_silent(name) or is_secret_header(name):
            return False
    return True


@lru_cache(maxsize=4096)
def is_silent(name: str) -> bool:
    """Whether a header field of this name says nothing about what is asked."""
    low = name.lower()
    return low in _SILENT or _SILENT_PARTS.search(low) is not None or is_secret_header(name)


def credential(headers: Headers) -> str:
    """Who asks. The value is what redaction left of it: the same for equal secrets, another for others."""
    names = {name.lower() for name, _ in headers}
    held = sorted(
        f"{name.lower()}={value}"
        for name, value in headers
        if is_secret_header(name)
        and name.lower() not in ("cookie", "set-cookie", "proxy-authorization")
        # a signature over date and body differs from request to request; who signs does not show
        and not (name.lower() == "authorization" and "x-amz-date" in names)
        and name.lower() not in ("x-amz-security-token", "x-amz-signature")
    )
    return " ".join(held)
