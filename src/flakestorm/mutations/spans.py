"""What of a prompt may be touched: words, as long as they are no names, numbers, addresses or quotations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flakestorm.core.choices import Draw

__all__ = ["COMMON_FIRST", "closed", "edited", "facts", "lowered", "outside", "words"]

_KEPT = re.compile(
    r"""
      (?:https?://|www\.)\S+
    | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | `[^`\n]*` | "[^"\n]*" | “[^”\n]*” | «[^»\n]*» | (?<!\w)'[^'\n]+'(?!\w)
    | \{[^{}\n]*\} | <[^<>\n]*>
    | (?<!\w)[@\#]\w[\w-]* | (?<!\w)~?(?:/[\w.-]+)+
    | [$€£¥₹]?\s?[+-]?\d[\d.,:/%°-]*\w*(?:-\w+)*
    | (?<!\w)\w*\d[\w-]*
    | (?<!\w)\w+(?:[._]\w+)+
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_BETWEEN = frozenset(" \t\r\"'“([*>-")
_ENDS = frozenset(".!?…:;\n")

COMMON_FIRST = frozenset(
    """
    a about add after all am an and answer any are arrange as ask at before book buy calculate call can cancel change
    check choose compare compute confirm convert could count create define delete describe did do does draft draw each
    estimate every explain extract fetch figure fill filter find first fix for from generate get give go has have hello
    help hey hi hotel how i if in is it its keep let list look make many may me more move my need next no not now of
    offer on open or order our pay place plan play please prepare print provide put rank read recommend register remind
    remove reply reserve reset return review rewrite run save say schedule search see select send set share should show
    sort start stop suggest summarise summarize take tell that the their then there these they this to today tomorrow
    translate turn two update use verify was we were what when where which who whose why will with would write yes you
    your
    """.split()  # noqa: SIM905
)
"""Words that begin a sentence without being a name."""


def words(text: str) -> list[re.Match[str]]:
    """The words that may be changed, in order."""
    kept = [found.span() for found in _KEPT.finditer(text)]
    found: list[re.Match[str]] = []
    at = 0
    for word in _WORD.finditer(text):
        while at < len(kept) and kept[at][1] <= word.start():
            at += 1
        inside = at < len(kept) and kept[at][0] < word.end()
        if not inside and not _name(text, word):
            found.append(word)
    return found


def facts(text: str) -> list[str]:
    """What must survive a benign mutation: names, numbers, addresses, quotations. Neighbours ("12 May") are one."""
    return [text[a:b] for a, b in _facts(text)]


def outside(text: str, change: Callable[[str], str]) -> str:
    """The text with everything between its facts changed."""
    parts, last = list[str](), 0
    for start, end in _facts(text):
        parts += [change(text[last:start]), text[start:end]]
        last = end
    return "".join((*parts, change(text[last:])))


def _facts(text: str) -> list[tuple[int, int]]:
    kept = [found.span() for found in _KEPT.finditer(text)]
    names = [word.span() for word in _WORD.finditer(text) if _name(text, word)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(kept + names):
        start += len(text[start:end]) - len(text[start:end].lstrip())
        if merged and (start <= merged[-1][1] or text[merged[-1][1] : start] == " "):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def edited(text: str, draw: Draw, share: float, change: Callable[[str], str | None], *, least: int = 1) -> str | None:
    """The text with about this share of its words changed; None where there is none that can be.

    Args:
        text, draw: what is changed, and by which draw.
        share: 0..1.
        change: gives the new word, or None where this word stays.
        least: how many words are changed in any case, if there are as many.
    """
    places = words(text)
    draw.shuffle(places)
    wanted, done = max(least, round(len(places) * share)), dict[int, tuple[int, str]]()
    for place in places:
        if len(done) == wanted:
            break
        new = change(place[0])
        if new is not None and new != place[0]:
            done[place.start()] = (place.end(), new)
    if not done:
        return None
    parts, last = [], 0
    for start, (end, new) in sorted(done.items()):
        parts += [text[last:start], new]
        last = end
    return "".join((*parts, text[last:]))


def closed(text: str) -> str:
    """The text with a full stop where it ends without any mark, so that another sentence can follow."""
    said = text.strip()
    return f"{said}." if said and (said[-1].isalnum() or said[-1] in ")\"'”»") else said


def lowered(text: str) -> str:
    """The text as it goes on inside a sentence: its first letter small, unless it begins with a fact or a name."""
    first = _WORD.match(text)
    if first is None or first[0].lower() not in COMMON_FIRST or first[0] == "I" or first[0].startswith(("I'", "I’")):
        return text
    if any(start == 0 for start, _ in _facts(text)):  # "HI", "Info@example.com": common, but not as it stands here
        return text
    return text[0].lower() + text[1:]


def _name(text: str, word: re.Match[str]) -> bool:
    """A word with a capital is a name, unless it begins a sentence and is a common one; so is one of capitals only."""
    said = word[0]
    if said in ("I", "I'm", "I'd", "I'll", "I've") or not any(letter.isupper() for letter in said):
        return False
    at = word.start() - 1
    while at >= 0 and text[at] in _BETWEEN:
        at -= 1
    begins = at < 0 or text[at] in _ENDS
    return not (begins and said[1:] == said[1:].lower() and said.lower() in COMMON_FIRST)
