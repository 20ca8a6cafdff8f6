"""False values: for one value of a tool's result another one, wrong and just as believable.

A number becomes another number of its size, a date an earlier date, an identifier another one of its shape. Nothing
here changes a type or a form: a whole number stays whole, a date stays a date in the same notation, and letters,
lengths and separators of an identifier stay where they are. What has no such twin (a plain word, an address) has no
false value, and None says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, timedelta

from flakestorm.core.choices import Draw

__all__ = ["dated", "form_of", "number", "prose", "word"]

_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?=$|[T ])")
_OTHER_DATE = re.compile(r"(\d{1,2})([/.])(\d{1,2})\2(\d{4})$")
_TIME = re.compile(r"(\d{1,2})(:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?\s?(Z|[+-]\d{2}:?\d{2}|[AaPp]\.?[Mm]\.?)?)$")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_IP_V4 = re.compile(r"(\d{1,3}\.\d{1,3}\.\d{1,3}\.)(\d{1,3})$")
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,14})$")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,9}$")
_TOKENS = re.compile(  # what a text holds that could be false; mark-up and addresses are passed over
    r"<(?:script|style)\b.*?</(?:script|style)\s*>|<!--.*?-->|</?[a-zA-Z][^<>]*>|&#?\w+;|[^\s<>]{0,200}(?:://|@)\S*"
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\w)"
    r"|(?P<word>[A-Za-z0-9](?:[\w./:-]*\w)?)",
    re.DOTALL | re.IGNORECASE,
)
_DIGIT, _HEX = re.compile(r"\d", re.ASCII), "0123456789abcdef"
_LONGEST_WORD = 64
_SEARCHED = 20_000  # characters of a text; an agent reads the beginning of a long one, if any of it
_DAY_S = 86_400
_EPOCH_S = range(1_000_000_000, 2_200_000_000)
_YEARS = range(1900, 2101)
_EXACT = 2**53  # beyond this not every parser keeps whole numbers


def number(was: int | float, draw: Draw) -> int | float:
    """Another number: a moment in epoch time up to 30 days earlier, a year up to 3 years off, else off by 5 to 30%.

    A whole number stays one, the sign stays, a part of one (0.25) stays below one, and decimals stay as many.
    """
    if isinstance(was, int):
        return _whole(was, draw)
    places = len(repr(was).partition(".")[2]) if "e" not in repr(was) else 0
    share = draw.uniform(0.05, 0.3)
    if was == 0 or not math.isfinite(was):
        return 0.5
    shrinks = abs(was) < 1 or abs(was) > 1e300 or draw.random() < 0.5
    now = was * (1 - share if shrinks else 1 + share)
    if "e" in repr(was):
        return now
    rounded = round(now, places)
    return rounded if rounded not in (was, 0.0) else round(now, places + 2)


def _whole(was: int, draw: Draw) -> int:
    size = abs(was)
    if was in _EPOCH_S:
        return was - _DAY_S * draw.randint(1, 30)
    if was // 1000 in _EPOCH_S:
        return was - 1000 * _DAY_S * draw.randint(1, 30)
    step = max(1, round(size * draw.uniform(0.05, 0.3))) if size <= _EXACT else draw.randint(1, 9)
    if was in _YEARS:
        step = draw.randint(1, 3)
    if size - step < 1 or draw.random() < 0.5:
        size += step
    else:
        size -= step
    return -size if was < 0 else size


def dated(was: str, draw: Draw) -> str | None:
    """An earlier date in the same notation, a time at another hour; None for what is neither."""
    if found := _DATE.match(was):
        try:
            before = date.fromisoformat(found[1]) - timedelta(days=draw.randint(1, 30))
        except (ValueError, OverflowError):
            return None
        return before.isoformat() + was[found.end() :]
    if found := _OTHER_DATE.match(was):  # which of the two is the day nobody knows; a year is a year
        return f"{was[: found.start(4)]}{_year(int(found[4]), draw):04d}"
    if found := _TIME.match(was):
        hour, half = int(found[1]), (found[3] or "")[:1] in tuple("AaPp")
        if not (1 <= hour <= 12 if half else hour <= 23):
            return None
        step = draw.randint(1, 11)
        other = (hour - 1 + step) % 12 + 1 if half else (hour + step) % 24
        return f"{other:0{len(found[1])}d}{found[2]}"
    return None


def _year(was: int, draw: Draw) -> int:
    """A year with the same calendar of leap days, so that a 29th of February stays a date."""
    step = 4 * draw.randint(1, 2)
    other = was - step if was > 1000 + step else was + step
    leap = was % 4 == 0 and (was % 100 != 0 or was % 400 == 0)
    return other if not leap or (other % 4 == 0 and (other % 100 != 0 or other % 400 == 0)) else other - 4


def word(was: str, draw: Draw) -> str | None:
    """Another date, number or identifier of the same shape; None for what is none of them."""
    if not was or len(was) > _LONGEST_WORD or not _DIGIT.search(was) or "://" in was:
        return None if not _UUID.match(was) else _uuid(was, draw)
    if (other := dated(was, draw)) is not None:
        return other
    if _DATE.match(was) or _TIME.match(was):  # it looks like one and is none; leave it
        return None
    if _UUID.match(was):
        return _uuid(was, draw)
    if found := _IP_V4.match(was):
        return found[1] + str(int(found[2]) % 254 + 1)
    if _WHOLE.match(was):
        return str(_whole(int(was), draw))
    if _DECIMAL.match(was):
        places = len(was.partition(".")[2])
        other = f"{number(float(was), draw):.{places}f}"
        return other if other != was else _digits(was, draw)
    return _digits(was, draw)


def _uuid(was: str, draw: Draw) -> str:
    tail = "".join(draw.choice([c for c in _HEX if c != old.lower()]) for old in was[-4:])
    return was[:-4] + (tail.upper() if was.upper() == was else tail)


def _digits(was: str, draw: Draw) -> str:
    """Up to three of the last digits changed; what was not 0 does not become 0, so no number gains a leading zero."""
    at = [found.start() for found in _DIGIT.finditer(was)][-6:]
    signs = list(was)
    for place in sorted(draw.sample(at, min(len(at), draw.randint(1, 3)))):
        old = int(signs[place])
        signs[place] = str(draw.randint(1, 9) if old == 0 else (old - 1 + draw.randint(1, 8)) % 9 + 1)
    return "".join(signs)


def prose(was: str, draw: Draw, most: int) -> tuple[str, list[tuple[str, str]]]:
    """A text with up to `most` of its numbers, dates and identifiers false, and which became which.

    Mark-up, web and mail addresses stay as they are. A bare digit counts only where the text holds nothing longer.
    """
    found = [(match.start(), match[0]) for match in _TOKENS.finditer(was[:_SEARCHED]) if _is_fact(match)]
    longer = [(at, token) for at, token in found if len(token) > 1]
    picked = sorted(draw.sample(longer or found, min(most, len(longer or found))))
    parts: list[str] = []
    changes: list[tuple[str, str]] = []
    done = 0
    for at, token in picked:
        other = word(token, draw)
        if other is None:
            continue
        parts += (was[done:at], other)
        changes.append((token, other))
        done = at + len(token)
    return "".join((*parts, was[done:])), changes


def _is_fact(match: re.Match[str]) -> bool:
    text = match[0]
    return _DIGIT.search(text) is not None and text[0] not in "<&" and "://" not in text and "@" not in text


def form_of(text: str) -> str:
    """What kind of thing a string is, so that only like is exchanged for like: `date`, `time`, `name` or a shape.

    A name is a word or a few, each with a capital; other texts have the shape of their letters and digits, so that two
    codes are alike and a code and a sentence are not. Empty for what is too long to be told.
    """
    checks: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("date and time", lambda s: _DATE.match(s) and len(s) > 10),
        ("date", _DATE.match),
        ("time", _TIME.match),
        ("uuid", _UUID.match),
    )
    for form, check in checks:
        if check(text):
            return form
    if not text or len(text) > _LONGEST_WORD:
        return ""
    words = text.split()
    if len(words) <= 4 and all(one[0].isupper() and one[1:].isalpha() and one[1:].islower() for one in words):
        return "name"
    return re.sub(r"[^\W\d_]", "a", _DIGIT.sub("0", text)) if _DIGIT.search(text) else ""
