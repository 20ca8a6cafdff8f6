"""Finding injected instructions and jailbreaks in text.

The patterns are data (`injection.yaml`). A strong one is reported on its own. The weak ones are what harmless text says
too ("pretend to be", "in a hypothetical world"); they count where several stand near each other, and the weakest only
next to others. What a text quotes or talks about ("attackers write “ignore previous instructions”") counts for less
than what it says.

Text in disguise is looked at twice: as it is, and as a model would read it (`disguise.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from flakestorm.patterns.disguise import ENCODED, WHOLE, disclosed
from flakestorm.patterns.engine import Document, Matcher, file_of
from flakestorm.patterns.everywhere import Everywhere
from flakestorm.patterns.finding import Finding
from flakestorm.patterns.known import known
from flakestorm.patterns.prefilter import Anchor, Prefilter

__all__ = ["THRESHOLD", "expand", "injection_rows", "injections"]

THRESHOLD = 0.5
"""What a sign, or signs near each other, must reach to be reported."""

SUPPORT = 0.3
"""Signs up to this are not looked for on their own."""

PIECE_CHARS = 200_000
"""How much of a text is read at once, in characters; pieces overlap."""

_OVERLAP = 4_000  # of one piece with the next, in characters
_NEAR = 800  # signs that are at most this far apart, in characters, belong together
_MENTIONED = 0.4  # what is left of a sign's weight where it is only talked about
_BEFORE = 60  # how far in front of a sign the words may stand that make it a mention, in characters
_REACH = 160  # how far a match may reach from one of its words, in bytes, where its row does not say
_MOST = 200  # places per pattern

_QUOTED = re.compile(
    r"\b(?:such as|like|e\.g\.|for (?:example|instance)|phrases?|wordings?|sentences?|strings?|texts?|term|called|says?"
    r"|said|wrote|writes?|writing|reads?|attack(?:s|ers?|ing)?|injections?|inject(?:ed|ing)?|concept|detect(?:s|ing|ion)?"
    r"|prevent(?:s|ing|ion)?|defend(?:s|ing)?|block(?:s|ing)?|against|examples?|articles?|papers?)\b[^.!?\n]{0,30}\Z",
    re.IGNORECASE,
)
"""What stands in front of the mark that opens what is quoted."""
_DISCUSSED = re.compile(
    r"\b(?:explain|define|describe|discuss|what is|meaning of|concept of|definition of|history of|how (?:do|does|did)"
    r"|prevent|avoid|detect|defend against|protect against|importance of not|not to|why)\b[^.!?\n]{0,30}\Z",
    re.IGNORECASE,
)
_OPENING = "\"'“‘«`("


Stretch = tuple[int, int]
"""Where something may be, in bytes."""


@dataclass(frozen=True, slots=True)
class _Sign:
    id: str
    family: str
    confidence: float
    unless_after: re.Pattern[str] | None
    reach: int


def injections(text: str) -> list[Finding]:
    """The places of a text that give a model orders or talk it out of its rules, in order.

    Args:
        text: any text; a long one is read piece by piece.
    """
    pieces = range(0, max(1, len(text) - _OVERLAP), PIECE_CHARS - _OVERLAP)
    found = {
        f._replace(start=f.start + first, end=f.end + first) if first else f
        for first in pieces
        for f in _in_piece(text[first : first + PIECE_CHARS])
    }
    return sorted(found, key=lambda f: (f.start, f.end, f.id))


def _in_piece(text: str) -> list[Finding]:
    document = Document(_straight(text))
    candidates, signs, encoded = _candidates(document)
    found = _plainly(document, candidates)
    taken = [(f.start, f.end) for f in found]
    for start, end, plain in disclosed(document, signs, encoded):
        inner = _strongest(plain)
        if inner is not None and not any(start < stop and first < end for first, stop in taken):
            found.append(Finding("injection", inner.id, inner.entity, start, end, inner.confidence))
    return found


def _candidates(document: Document) -> tuple[dict[int, list[Stretch]], dict[int, list[Stretch]], list[int]]:
    """The patterns that a text may hold, and the signs of disguise (`disguise.WHOLE`), each with where it may lie.

    Also which of `disguise.ENCODED` it holds.
    """
    _, prefilter, rows = _patterns()
    candidates = prefilter.candidates(document.data)
    encoded, absent = _everywhere().asked(document)
    for index in absent & candidates.keys():
        del candidates[index]
    signs = {index - len(rows): candidates.pop(index) for index in sorted(candidates) if index >= len(rows)}
    return candidates, signs, encoded


def _plainly(document: Document, candidates: dict[int, list[Stretch]]) -> list[Finding]:
    """What is said without disguise, looked for only where it can weigh enough.

    Signs that only support others are looked for where there are others.
    """
    _, _, signs = _patterns()
    near = _NEAR if document.plain else 4 * _NEAR  # a character has at most four bytes
    whole = [(0, len(document.data))]
    found: list[Finding] = []
    anywhere: list[int] = []  # signs of which nothing says where they may be
    for index in [index for index, stretches in candidates.items() if stretches == whole]:
        del candidates[index]
        if signs[index].confidence <= SUPPORT:
            anywhere.append(index)
        else:
            found += _located(index, document, whole)
    for group in _groups(candidates, near):
        if _weight([*found, *(signs[index] for index in (*group, *anywhere))]) < THRESHOLD:
            continue
        # The strongest first, while what is found and what is left can weigh enough together.
        left = sorted(group, key=lambda index: signs[index].confidence)
        there: list[Finding] = []
        elsewhere: list[Finding | _Sign] = [*found, *(signs[index] for index in anywhere)]
        while left and _most([*elsewhere, *there, *(signs[index] for index in left)]) >= THRESHOLD:
            index = left.pop()
            if signs[index].confidence <= SUPPORT and not there and not found:
                break
            there += _located(index, document, group[index])
        found += there
    if found:
        found += (place for index in anywhere for place in _located(index, document, whole))
    return _convincing(found)


def _groups(candidates: dict[int, list[Stretch]], near: int) -> Iterator[dict[int, list[Stretch]]]:
    """Patterns that may occur near each other, with their stretches."""
    places = sorted((start, end, index) for index, stretches in candidates.items() for start, end in stretches)
    group: dict[int, list[Stretch]] = {}
    reach = 0
    for start, end, index in places:
        if group and start > reach + near:
            yield group
            group, reach = {}, 0
        group.setdefault(index, []).append((start, end))
        reach = max(reach, end)
    if group:
        yield group


def _strongest(text: str) -> Finding | None:
    """What a disclosed text gives away; it is not disclosed any further."""
    document = Document(_straight(text))
    found = _plainly(document, _candidates(document)[0])
    return max(found, key=lambda f: f.confidence, default=None)


def _straight(text: str) -> str:
    """Straight quotation marks and apostrophes, one for one."""
    if not text.isascii():
        for curly, straight in ("’'", "‘'", '“"', '”"'):
            text = text.replace(curly, straight)
    return text


def _located(index: int, document: Document, within: list[Stretch]) -> Iterator[Finding]:
    matcher, _, signs = _patterns()
    sign = signs[index]
    for count, (start, end) in enumerate(matcher.places(index, document, within)):
        if count == _MOST:
            return
        if sign.unless_after and sign.unless_after.match(document.text, end):
            continue
        mentioned = _mentioned(document.text[max(0, start - _BEFORE) : start])
        confidence = round(sign.confidence * (_MENTIONED if mentioned else 1.0), 2)
        yield Finding("injection", sign.id, sign.family, start, end, confidence)


def _mentioned(before: str) -> bool:
    """Whether what stands in front of a sign says that the sign is only talked about."""
    quoting = before.rstrip()
    if quoting and quoting[-1] in _OPENING and _QUOTED.search(quoting, 0, len(quoting) - 1):
        return True
    line = before.removesuffix("\n")
    start = max(map(line.rfind, ".!?\n")) + 1  # of the sentence: it is short, and the search of it too
    return _DISCUSSED.search(line, start) is not None


def _convincing(found: list[Finding]) -> list[Finding]:
    """The findings of those neighbourhoods whose signs together weigh enough and do not only support others."""
    if not found:
        return []
    strong = {sign.id for sign in _patterns()[2] if sign.confidence > SUPPORT}
    kept: list[Finding] = []
    group: list[Finding] = []
    reach = 0
    for finding in [*sorted(found, key=lambda f: f.start), None]:
        if finding is None or (group and finding.start > reach + _NEAR):
            if any(sign.id in strong for sign in group) and _weight(group) >= THRESHOLD:
                kept += group
            group, reach = [], 0
        if finding is not None:
            group.append(finding)
            reach = max(reach, finding.end)
    return kept


def _weight(signs: Sequence[Finding | _Sign]) -> float:
    """What signs say together, 0 to 1: each pattern counts once, and more of one technique counts less and less."""
    families: dict[str, dict[str, float]] = {}
    for sign in signs:
        family = families.setdefault(sign.entity if isinstance(sign, Finding) else sign.family, {})
        family[sign.id] = max(family.get(sign.id, 0.0), sign.confidence)
    doubt = 1.0
    for family in families.values():
        share = 1.0
        for confidence in sorted(family.values(), reverse=True):
            doubt *= 1 - confidence * share
            share *= 0.75
    return round(1 - doubt, 3)


def _most(signs: Sequence[Finding | _Sign]) -> float:
    """What signs say together at most: their weight if no two were of one technique. Sooner known."""
    doubt = 1.0
    for sign in signs:
        doubt *= 1 - sign.confidence
    return round(1 - doubt, 3)


def injection_rows() -> list[dict[str, Any]]:
    """The entries of `injection.yaml`, their patterns written out."""
    data = file_of("injection.yaml")
    return [{**row, "pattern": expand(row, data["words"])} for row in data["patterns"]]


def expand(row: dict[str, Any], words: dict[str, str]) -> str:
    """One pattern in RE2 syntax: names replaced, spaces widened, bound to the beginning of a word."""
    source = re.sub(r"<([a-z]+)>", lambda name: words.get(name[1], name[0]), row["pattern"])
    gap = _GAP if _OTHER_SCRIPT.search(source) else r"\W"
    source = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.| [*?]?|[^\x00-\x7f]", lambda part: _widened(part[0], gap), source)
    bound = "" if source.startswith("^") or not row.get("whole", True) else r"\b"
    return f"(?im){bound}(?:{source})"


_GAP = r"[\x00-/:-@\[-^`{-\x7f" + "\xa0\u2000-\u206f\u3000-\u303f\u060c\u061b\u061f\u0964]"
"""What stands between words of scripts other than Latin, whose letters `\\W` takes for none: marks and spaces."""
_OTHER_SCRIPT = re.compile("[\u0370-\u1fff\u3040-\ud7ff]")


def _widened(text: str, gap: str) -> str:
    """A space as anything between words; letters that are not ASCII in both cases, which `re.ASCII` would not try."""
    if text.startswith(" "):
        return f"{gap}+" if text == " " else f"{gap}*"
    both = "".join(
        dict.fromkeys(case for c in text if not c.isascii() for case in (c.lower(), c.upper()) if len(case) == 1)
    )
    if text.startswith("["):
        return f"{text[:-1]}{both}]"
    return f"[{both}]" if len(both) > 1 else text


@cache
def _patterns() -> tuple[Matcher, Prefilter, list[_Sign]]:
    rows = _rows()
    signs = [
        _Sign(
            row["id"],
            row["family"],
            row["confidence"],
            re.compile(row["unless_after"], re.IGNORECASE) if "unless_after" in row else None,
            row.get("reach", _REACH),
        )
        for row in rows
    ]
    patterns = [row["pattern"] for row in rows]
    reaches = [*(sign.reach for sign in signs), *(_REACH for _ in WHOLE)]
    return Matcher(patterns, together=False, loosely=True), Prefilter(_needed(), reaches), signs


@cache
def _everywhere() -> Everywhere:
    """What is asked of whole texts; not what only supports other signs, which is asked for where there are others."""
    rows = _rows()
    patterns = [*(row["pattern"] for row in rows), *WHOLE]
    kinds: dict[str, dict[int, str]] = {"always": {}, "strange": {}}
    for index, kind, *_ in _needed():
        if kind in kinds and (index >= len(rows) or rows[index]["confidence"] > SUPPORT):
            kinds[kind][index] = patterns[index]
    return Everywhere(ENCODED, kinds["always"], kinds["strange"])


@cache
def _needed() -> list[Anchor]:
    return known([*(row["pattern"] for row in _rows()), *WHOLE])


_rows = cache(injection_rows)
