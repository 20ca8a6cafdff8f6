"""Volatile tokens: what differs between two runs that do the same, and means nothing.

UUIDs, times, temporary names, ports of this machine and the ids that providers give out. A token is renamed, never
erased: what was equal must stay equal, and what was different, different (`match.py` sees to that). What looks like one
but may be the point of the request stays as it is: a whole minute (`2026-05-20T10:00:00`) is an appointment, and ten
digits are an order number, unless they are near the clock of the recording or of the replay, or stand in a field that
is known to hold such a thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import cache
from json.encoder import encode_basestring
from typing import Any, NamedTuple, cast

from flakestorm.core.canon import number

__all__ = ["NEAR_S", "RPC", "Span", "Token", "Tokens", "scan_reply"]

_TIME = ("iso", "rfc", "epoch", "day")

NEAR_S = 600.0
"""How far from a run's clock a time may be and still be its clock's."""

RPC = "\0rpc"
"""The name under which the `id` of a JSON-RPC message is read."""


class Token(NamedTuple):
    """A volatile token in a request.

    Args:
        kind: `uuid`, `id`, `path`, `port`, of a time `iso`, `rfc`, `epoch`, `day`; `rpc` is the number of a JSON-RPC
            message, which means something to that message's answer only.
        text: as it stands there.
        now: whether it is near the clock of the recording or of the replay, so that it only says when that was.
    """

    kind: str
    text: str
    now: bool = False

    @property
    def is_time(self) -> bool:
        return self.kind in _TIME


@dataclass(slots=True)
class Span:
    """When a run took place, in seconds since 1970; `offset_s` is what its local time was ahead of UTC."""

    begin_s: float
    end_s: float
    offset_s: float = 0.0

    def near(self, at_s: float) -> bool:
        """Whether a moment belongs to it."""
        return self.begin_s - NEAR_S <= at_s <= self.end_s + NEAR_S

    def on(self, day: date) -> bool:
        """Whether it took place on this day, in UTC or in its local time."""
        for moment in (self.begin_s, self.end_s):
            for offset in (0.0, self.offset_s):
                if (datetime.fromtimestamp(0, UTC) + timedelta(seconds=moment + offset)).date() == day:
                    return True
        return False


_HEX = "[0-9a-fA-F]"
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_TOKEN = re.compile(
    rf"""(?<![0-9A-Za-z])(?:
      (?P<uuid>{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}} | {_HEX}{{12}}[1-8]{_HEX}{{3}}[89abAB]{_HEX}{{15}})
    | (?P<iso>\d{{4}}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?(?:[ ]?(?:Z|UTC|[+-]\d\d:?\d\d))?)
    | (?P<rfc>(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),[ ])?\d{{1,2}}[ ](?:{_MONTHS})[ ]\d{{4}}[ ]\d\d:\d\d:\d\d
        (?:[ ](?:GMT|UTC|[+-]\d{{4}}))?)
    | (?P<day>\d{{4}}-\d\d-\d\d)
    | (?P<id>(?:call|toolu|srvtoolu|mcptoolu|msg|resp|fc|rs)_[A-Za-z0-9]{{8,}} | chatcmpl-[A-Za-z0-9-]{{8,}}
        | tooluse_[A-Za-z0-9_-]{{22}})
    | (?<=/)(?P<path>tmp[a-z0-9_]{{8}} | tmp\.[A-Za-z0-9]{{6,12}})
    | (?<=/)(?P<pytest>pytest-\d+)(?=/)
    | (?:(?<=127\.0\.0\.1:)|(?<=localhost:)|(?<=\[::1\]:))(?P<port>\d{{1,5}})
    | (?<![.\-])(?P<epoch>\d{{19}}|\d{{16}}|\d{{13}}|\d{{10}}(?:\.\d{{1,9}})?)(?!\.\d)
    )(?![0-9A-Za-z])""",
    re.VERBOSE,
)
_BEGINS = (
    rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-|[0-9a-fA-F]{32}|(?:call|toolu|srvtoolu|mcptoolu|msg|resp|fc|rs)_[A-Za-z0-9]{8}"
    rb"|tooluse_[A-Za-z0-9_-]{8}|chatcmpl-[A-Za-z0-9-]{8}|/tmp[a-z0-9_.]|/pytest-[0-9]|(?:127\.0\.0\.1|localhost|\[::1\]):[0-9]"
)
_WORD = re.compile(rb"[0-9A-Za-z]*")
_MAYBE = re.compile(r"\d\d|:\d|_[A-Za-z0-9]{8}|tmp")
_ID_FIELDS = frozenset(
    ("requestid", "clientrequestid", "idempotencykey", "traceid", "spanid", "correlationid", "nonce", "invocationid")
)
_TIME_FIELDS = frozenset(
    (
        *("created", "createdat", "timestamp", "timestampms", "ts", "now", "currenttime", "currentdatetime", "sentat"),
        *("requestedat", "generatedat", "issuedat", "startedat", "updatedat", "iat", "nbf"),
    )
)
_CUE = re.compile(r"(?i)\b(?:now|current(?:ly)?|today|timestamp|generated|as of|local time|utc time)\b[^\n]{0,40}$")


class Tokens:
    """Finds the volatile tokens of requests.

    Args:
        spans: when the recording and the replay took place. Both count for both sides, so that equal text is always
            read alike; the replay's own may grow meanwhile.
    """

    def __init__(self, spans: Sequence[Span] = ()) -> None:
        self._spans = spans

    def leaf(self, found: list[Token]) -> _Leaf:
        """A `Leaf` that puts the tokens it finds into `found`, and a mark in their place."""
        return _Leaf(self, found)

    def text(self, text: str, found: list[Token], name: str = "") -> str:
        """The text with a mark in place of each token, which goes into `found`."""
        if not _MAYBE.search(text):
            return text
        parts: list[str] = []
        at = 0
        for match in _TOKEN.finditer(text):
            token = self._token(match, name)
            if token is not None:
                parts += (text[at : match.start()], f"\0{token.kind}\0")
                found.append(token)
                at = match.end()
        return "".join((*parts, text[at:])) if parts else text

    def field(self, name: str, value: str | int | Decimal) -> Token | None:
        """The token that a whole value is because of its field's name, or, of a number, because it is a time."""
        plain = name.replace("_", "").replace("-", "").lower()
        if name == RPC or plain == "progresstoken":
            return Token("rpc", value if isinstance(value, str) else number(value))
        if plain in _ID_FIELDS:
            return Token("id", value if isinstance(value, str) else number(value))
        if isinstance(value, str):
            return None
        return self._epoch(number(value), plain in _TIME_FIELDS)

    def _token(self, match: re.Match[str], name: str) -> Token | None:
        kind, text = str(match.lastgroup), match[0]
        if kind in ("uuid", "port"):
            return Token(kind, text)
        if kind == "id":
            return Token(kind, text) if any(map(str.isdigit, text)) or text.lower() != text else None
        if kind in ("path", "pytest"):
            return Token("path", text)
        known = name.replace("_", "").replace("-", "").lower() in _TIME_FIELDS
        cued = known or _CUE.search(match.string, max(0, match.start() - 80), match.start()) is not None
        if kind == "epoch":
            return self._epoch(text, known)
        return self._time(kind, text, cued)

    def _epoch(self, text: str, known: bool) -> Token | None:
        whole, _, fraction = text.partition(".")
        if len(whole) not in (10, 13, 16, 19) or not whole.isdigit() or (fraction and len(whole) != 10):
            return None
        seconds = float(text) / 10 ** (len(whole) - 10)
        now = any(span.near(seconds) for span in self._spans)
        return Token("epoch", text, now) if known or now else None

    def _time(self, kind: str, text: str, cued: bool) -> Token | None:
        if kind == "day":
            day = _day(text)
            now = day is not None and any(span.on(day) for span in self._spans)
            return Token(kind, text, True) if now else None
        moment = _moment(kind, text)
        if moment is None:
            return None
        now = any(span.near(at) for span in self._spans for at in _seconds(moment, span))
        exact = moment.second != 0 or moment.microsecond != 0
        return Token(kind, text, now) if now or cued or exact else None


class _Leaf:
    """See `Tokens.leaf`."""

    __slots__ = ("_found", "_tokens")

    def __init__(self, tokens: Tokens, found: list[Token]) -> None:
        self._tokens, self._found = tokens, found

    def __call__(self, name: str, value: str | int | Decimal) -> str | None:
        token = self._tokens.field(name, value)
        if token is not None:
            self._found.append(token)
            return f"\0{token.kind}\0"
        if not isinstance(value, str):
            return None
        text = self._tokens.text(value, self._found, name)
        return None if text is value else encode_basestring(text)


def scan_reply(text: str) -> list[tuple[int, int, str]]:
    """Where in a reply there are tokens that are no times: begin, end and text, in order."""
    if not _MAYBE.search(text):
        return []
    plain = text.encode("ascii", "replace")  # one byte for each character
    found: list[tuple[int, int, str]] = []
    likely, at, done = _likely(), 0, 0
    while (near := likely.search(plain, at)) is not None:
        begin, end = near.span()
        if plain[begin : begin + 1] == b"/":
            begin += 1
        elif plain[end - 2 : end - 1] == b":":
            begin = end - 1
        match = _TOKEN.match(text, begin) if begin >= done else None
        if match is not None and match.lastgroup not in _TIME:
            found.append((match.start(), match.end(), match[0]))
            end = done = match.end()
        else:
            end = cast(re.Match[bytes], _WORD.match(plain, begin)).end()
        at = max(end - len("localhost"), near.start() + 1)  # only what stands before a port begins within a word
    return found


@cache
def _likely() -> Any:
    """Where a token may stand that is no time: what each of them begins with, found in one pass."""
    try:
        import re2  # only replays need it, and it takes a while
    except ImportError:
        return re.compile(_BEGINS)
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(_BEGINS, options)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _moment(kind: str, text: str) -> datetime | None:
    try:
        if kind == "rfc":
            return parsedate_to_datetime(text)
        plain = text.replace(",", ".").replace("UTC", "Z").replace(" Z", "Z").replace(" +", "+").replace(" -", "-")
        head, dot, rest = plain.partition(".")
        digits = len(rest) - len(rest.lstrip("0123456789"))
        return datetime.fromisoformat(f"{head}.{rest[:digits][:6]:0<6}{rest[digits:]}" if dot else plain)
    except (ValueError, IndexError, TypeError):
        return None


def _seconds(moment: datetime, span: Span) -> tuple[float, ...]:
    """The moment since 1970; one that names no zone may be in UTC or in the run's local time."""
    try:
        if moment.tzinfo is not None:
            return (moment.timestamp(),)
        at = moment.replace(tzinfo=UTC).timestamp()
    except (OverflowError, ValueError):
        return ()
    return at, at - span.offset_s
