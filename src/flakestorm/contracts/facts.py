"""The facts in a text that can be checked: numbers, dates, times and ids, in a form in which equal ones are equal.

`1,200`, `$1200.00` and `1200` are one number; `May 12`, `12.5.2026` and `2026-05-12` are one date (a date without a
year agrees with any year); `3:30 PM` is `15:30`. An id is a word that holds both letters and digits, as it is written
but for case. A number at the start of a line that only counts the line is no fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

__all__ = ["Fact", "facts"]

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_FACT = re.compile(
    r"(?P<mail>(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]*\w)"
    r"|(?P<iso>\b(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d))"
    r"|(?P<slash>\b(?P<s1>\d{1,2})[/.](?P<s2>\d{1,2})[/.](?P<sy>\d{4}|\d{2})\b)"
    rf"|(?P<mdy>\b{_MONTH.format('mon1')}\s+(?P<md>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<my>\d{{4}})\b)?)"
    rf"|(?P<dmy>\b(?P<dd>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?[\s-]+{_MONTH.format('mon2')}(?![a-z])"
    r"(?:,?[\s-]+(?P<dy>\d{4})\b)?)"
    r"|(?P<time>(?<![\d:])(?P<h>\d{1,2}):(?P<min>\d{2})(?::\d{2}(?:\.\d+)?)?(?:\s*(?P<ap>[ap])\.?m\b\.?)?)"
    r"|(?P<hour>\b(?P<hh>\d{1,2})\s*(?P<hap>[ap])\.?m\b\.?)"
    r"|(?P<id>\b(?=\w*\d)(?=\w*[^\W\d_])\w+(?:-\w+)*\b|\b[A-Z]{2,}(?:-\w*\d\w*)+\b)"
    r"|(?P<number>(?<![\w.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,]|\.\d)|(?<![\w])\d+(?:\.\d+)?(?!\w))",
    re.IGNORECASE,
)
_PRECISE = 28
"""Characters of the longest number that `decimal` keeps as it is."""
_ITEM = re.compile(r"(?m)^[ \t>*#-]*\d{1,3}[.)](?=\s)")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|x|s)", re.IGNORECASE)
_UNIT = re.compile(
    r"(\d+(?:\.\d+)?)(?:k|kg|g|km|m|cm|mm|mi|lbs?|h|hrs?|min|mins|ms|gb|mb|kb|tb|usd|eur|gbp|pm|am|c|f)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact, and where it stands.

    Args:
        kind: what it is.
        value: numbers without separators and trailing zeros; dates as `YYYY-MM-DD`, with `*` for a year that is not
            said; times as `HH:MM`; ids in lower case.
        text: as it is written.
        at: its place in the text.
    """

    kind: Literal["number", "date", "time", "id"]
    value: str
    text: str
    at: int


def facts(text: str) -> Iterator[Fact]:
    """The facts in a text, in order. A date that may be read in two ways gives both readings, at one place."""
    counters = {match.end() - 1 for match in _ITEM.finditer(text)}
    for match in _FACT.finditer(text):
        if match.lastgroup is None or match.end() in counters:
            continue
        for kind, value in _read(match):
            yield Fact(kind, value, match[0], match.start())


Kind = Literal["number", "date", "time", "id"]


def _read(match: re.Match[str]) -> Iterator[tuple[Kind, str]]:
    whole = match[0]
    if match["mail"]:
        yield "id", whole.lower()
    elif match["iso"]:
        yield from _date(match["y"], match["m"], match["d"])
    elif match["slash"]:
        year = match["sy"] if len(match["sy"]) == 4 else f"20{match['sy']}"
        yield from _date(year, match["s1"], match["s2"])
        if match["s1"] != match["s2"]:
            yield from _date(year, match["s2"], match["s1"])
    elif match["mdy"]:
        yield from _date(match["my"], _month(match["mon1"]), match["md"])
    elif match["dmy"]:
        yield from _date(match["dy"], _month(match["mon2"]), match["dd"])
    elif match["time"]:
        yield from _time(match["h"], match["min"], match["ap"])
    elif match["hour"]:
        yield from _time(match["hh"], "00", match["hap"])
    elif match["id"]:
        if unit := _UNIT.fullmatch(whole):
            yield "number", _number(unit[1])
        elif not _ORDINAL.fullmatch(whole):
            yield "id", whole.lower()
    else:
        yield "number", _number(whole)


def _date(year: str | None, month: str, day: str) -> Iterator[tuple[Kind, str]]:
    if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
        yield "date", f"{year or '*'}-{int(month):02d}-{int(day):02d}"


def _month(word: str) -> str:
    return str(next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(word.lower().rstrip(".")[:3])))


def _time(hour: str, minute: str, half: str | None) -> Iterator[tuple[Kind, str]]:
    h = int(hour)
    if half is not None:
        h = h % 12 + (12 if half.lower() == "p" else 0)
    if h <= 24 and int(minute) < 60:
        yield "time", f"{h:02d}:{minute}"


def _number(text: str) -> str:
    plain = text.replace(",", "")
    if len(plain) > _PRECISE:  # to count with it would round it
        return plain
    try:
        value = Decimal(plain)
    except InvalidOperation:  # pragma: no cover -- the pattern lets digits through only, but in any script
        return text
    return format(value.normalize(), "f")
