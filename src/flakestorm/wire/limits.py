"""Replies that refuse a call for its rate, and how long they ask to wait.

There is no one way to say it. HTTP has `Retry-After` (RFC 9110, section 10.2.3: seconds, or a date); OpenAI and Azure
add `retry-after-ms` and what is left of each limit with the time until it is whole again (`x-ratelimit-remaining-*`,
`x-ratelimit-reset-*`: `1s`, `6m0s`, `120ms`); Anthropic says the latter as points in time (RFC 3339), in
`anthropic-ratelimit-*-reset`; many others have one `x-ratelimit-reset` or `ratelimit-reset`, in seconds or as a Unix
time. A point in time is held against the reply's own `Date`, so that nobody's clock need be right.

Google says it in the body alone, whichever of its protocols is spoken: a `google.rpc.RetryInfo` among the details of
the error, with a protobuf duration (`retryDelay`: `34.4s`). A type's name says whose it is, so no wire need be asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from math import isfinite

import orjson

from flakestorm.core.call import Headers, header
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.shape import obj, objects

__all__ = ["asked_wait_ms", "may_refuse", "refuses", "told_wait_ms"]

_UNIX = 1_000_000_000  # a larger number of seconds is a point in time
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_MS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1000.0, "ms": 1.0}
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_LONG = 65_536  # no error takes that many bytes
_NAMED = ("requests", "tokens", "input-tokens", "output-tokens")


def refuses(status: int, headers: Headers) -> bool:
    """Whether this reply says that calls come too quickly: a 429, or a 503 or 529 that names a time to wait. One that
    names none is an outage, which waiting need not end."""
    return status == 429 or (may_refuse(status) and _retry_after_ms(headers) is not None)


def may_refuse(status: int) -> bool:
    """Whether a reply of this status may refuse a call for its rate; where `refuses` does not say so yet, its body may
    name a time."""
    return status in (429, 503, 529)


def told_wait_ms(headers: Headers, body: bytes) -> float | None:
    """How long the body of an error asks to wait, in milliseconds; None where it does not say."""
    if len(body) > _LONG or b"RetryInfo" not in (plain := decode_body(body, headers)) or len(plain) > _LONG:
        return None
    try:
        document = orjson.loads(plain)
    except orjson.JSONDecodeError:
        return None
    listed = document if isinstance(document, list) else [document]  # a list where the answer would have been one
    details = (each for doc in objects(listed) for each in objects(obj(doc.get("error")).get("details")))
    said = next((each.get("retryDelay") for each in details if each.get("@type") == _RETRY_INFO), None)
    return _lasting_ms(said) if isinstance(said, str) else None


def asked_wait_ms(headers: Headers) -> float | None:
    """How long the reply asks to wait, in milliseconds; None where it does not say."""
    said = _retry_after_ms(headers)
    return _reset_ms(headers) if said is None else said


def _retry_after_ms(headers: Headers) -> float | None:
    exact = _number(header(headers, "retry-after-ms"))
    if exact is not None:
        return exact
    text = header(headers, "retry-after")
    seconds = _number(text)
    return _until_ms(headers, _date(text)) if seconds is None else _finite(seconds * 1000)


def _reset_ms(headers: Headers) -> float | None:
    """The longest time until a limit is whole again, of those that are used up; of all, where none says so."""
    found: list[tuple[bool, float]] = []
    for remaining, reset in _limits():
        if (wait_ms := _span_ms(headers, header(headers, reset))) is not None:
            found.append((_number(header(headers, remaining)) == 0, wait_ms))
    spent = [wait_ms for used_up, wait_ms in found if used_up]
    return max(spent or (wait_ms for _, wait_ms in found), default=None)


def _limits() -> Iterable[tuple[str, str]]:
    """The names of the header fields of each limit: what remains, and when it is whole again."""
    for name in _NAMED:
        yield f"x-ratelimit-remaining-{name}", f"x-ratelimit-reset-{name}"
        yield f"anthropic-ratelimit-{name}-remaining", f"anthropic-ratelimit-{name}-reset"
    yield "x-ratelimit-remaining", "x-ratelimit-reset"
    yield "ratelimit-remaining", "ratelimit-reset"


def _span_ms(headers: Headers, text: str | None) -> float | None:
    """`6m0s`, `120ms`, `17` (seconds), `1767323045` (Unix time) or `2026-01-02T03:04:05Z`, as milliseconds from now."""
    seconds = _number(text)
    if seconds is not None:
        at = datetime.fromtimestamp(min(seconds, 1e11), UTC)
        return seconds * 1000 if seconds < _UNIX else _until_ms(headers, at)
    if text is None:
        return None
    lasting_ms = _lasting_ms(text)
    return _until_ms(headers, _date(text)) if lasting_ms is None else lasting_ms


def _lasting_ms(text: str) -> float | None:
    """`6m0s`, `120ms`, `34.4s`."""
    parts = _DURATION.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text.strip():
        return _finite(sum(float(number) * _UNIT_MS[unit] for number, unit in parts))
    return None


def _until_ms(headers: Headers, when: datetime | None) -> float | None:
    now = _date(header(headers, "date"))
    return None if when is None or now is None else max(0.0, (when - now).total_seconds() * 1000)


def _date(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        from email.utils import parsedate_to_datetime  # few replies speak of dates

        try:
            found = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):  # anybody may have written it
            return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _number(text: str | None) -> float | None:
    try:
        found = float(text or "")
    except ValueError:
        return None
    return _finite(found)


def _finite(number: float) -> float | None:
    return number if isfinite(number) and number >= 0 else None
