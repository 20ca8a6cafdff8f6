"""Slips of fingers, eyes and microphones: `noise`. All benign, and never in a name, a number or an address."""

from __future__ import annotations

from itertools import pairwise

from flakestorm.core.choices import Draw
from flakestorm.mutations.base import Operator, types
from flakestorm.mutations.spans import edited, outside, words

__all__ = ["NEIGHBOURS"]

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")

NEIGHBOURS: dict[str, str] = {
    key: "".join(
        other
        for r, others in enumerate(_ROWS)
        for c, other in enumerate(others)
        if other != key and abs(r - row) <= 1 and -1 <= (c + 0.5 * (r - row)) - column <= 1
    )
    for row, keys in enumerate(_ROWS)
    for column, key in enumerate(keys)
}
"""The keys beside and above each key of a QWERTY keyboard, whose rows are shifted by half a key."""

_CONFUSED = (
    ("their", "there"), ("there", "their"), ("your", "you're"), ("you're", "your"), ("its", "it's"), ("it's", "its"),
    ("to", "too"), ("too", "to"), ("than", "then"), ("then", "than"), ("know", "no"),
    ("where", "wear"), ("right", "write"), ("write", "right"), ("here", "hear"), ("weather", "whether"),
    ("flight", "flite"), ("please", "pleas"), ("receive", "recieve"), ("which", "witch"), ("buy", "by"),
)  # fmt: skip


def _slip(prompt: str, draw: Draw, how: str) -> str | None:
    def change(word: str) -> str | None:
        if len(word) < 3 or not word.isalpha():
            return None
        at = draw.randrange(1, len(word))  # the first letter stays: readers lean on it
        match how:
            case "neighbour":
                near = NEIGHBOURS.get(word[at].lower())
                return None if not near else word[:at] + draw.choice(near) + word[at + 1 :]
            case "swap":
                at = min(at, len(word) - 2)
                return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
            case "drop":
                return word[:at] + word[at + 1 :]
            case "double":
                return word[: at + 1] + word[at:]
        return None

    return edited(prompt, draw, draw.uniform(0.05, 0.3), change)


def _neighbour_key(prompt: str, draw: Draw) -> str | None:
    return _slip(prompt, draw, "neighbour")


def _transposed(prompt: str, draw: Draw) -> str | None:
    return _slip(prompt, draw, "swap")


def _dropped(prompt: str, draw: Draw) -> str | None:
    return _slip(prompt, draw, "drop")


def _doubled(prompt: str, draw: Draw) -> str | None:
    return _slip(prompt, draw, "double")


def _letter_case(prompt: str, draw: Draw) -> str | None:
    return edited(prompt, draw, draw.uniform(0.2, 0.8), lambda word: draw.choice((word.upper(), word.swapcase())))


def _confused(prompt: str, draw: Draw) -> str | None:
    known = dict(_CONFUSED)
    return edited(prompt, draw, 0.3, lambda word: known.get(word))


def _spacing(prompt: str, draw: Draw) -> str:
    """Spaces too many, where there are some."""
    gaps = _gaps(prompt)
    for at in sorted(draw.sample(gaps, min(len(gaps), draw.randint(1, 3))), reverse=True):
        prompt = prompt[:at] + " " * draw.randint(2, 4) + prompt[at + 1 :]
    return prompt if gaps else " " * draw.randint(1, 4) + prompt + " " * draw.randint(1, 4)


def _run_together(prompt: str, draw: Draw) -> str | None:
    """Two words without the space between them."""
    found = words(prompt)
    pairs = [(a, b) for a, b in pairwise(found) if prompt[a.end() : b.start()] == " "]
    if not pairs:
        return None
    first, _ = draw.choice(pairs)
    return prompt[: first.end()] + prompt[first.end() + 1 :]


def _punctuation(prompt: str, draw: Draw) -> str:
    bare = prompt.rstrip(" .!?")
    return bare + draw.choice(("", "..", "...", "!!", "??", " ?", "?!", " .", ",", "…", " !", "?!?"))


def _dictated(prompt: str, draw: Draw) -> str:
    """As a microphone hears it: fillers, no capitals where no name is."""
    said = edited(prompt, draw, 1.0, str.lower) or prompt
    found = words(said)
    for place in sorted(draw.sample(found, min(len(found), draw.randint(1, 3))), key=lambda w: -w.start()):
        said = said[: place.start()] + draw.choice(("um ", "uh ", "er ", "like ", "well ")) + said[place.start() :]
    return said if found else f"um {said}"


def _line_breaks(prompt: str, draw: Draw) -> str | None:
    gaps = _gaps(prompt)
    if not gaps:
        return None
    for at in sorted(draw.sample(gaps, min(len(gaps), draw.randint(1, 4))), reverse=True):
        prompt = f"{prompt[:at]}\n{prompt[at + 1 :]}"
    return prompt


def _gaps(prompt: str) -> list[int]:
    """The spaces that are inside nothing that must stay whole."""
    hidden = outside(prompt, lambda part: part.replace(" ", "\0"))
    return [at for at, letter in enumerate(hidden) if letter == "\0"]


@types.add("noise")
def noise() -> tuple[Operator, ...]:
    """Typing, hearing and pasting errors; all benign."""
    return (
        Operator("neighbour_key", "benign", _neighbour_key),
        Operator("transposed_letters", "benign", _transposed),
        Operator("dropped_letter", "benign", _dropped),
        Operator("doubled_letter", "benign", _doubled),
        Operator("letter_case", "benign", _letter_case),
        Operator("confused_words", "benign", _confused),
        Operator("extra_spaces", "benign", _spacing),
        Operator("run_together", "benign", _run_together),
        Operator("punctuation", "benign", _punctuation),
        Operator("dictated", "benign", _dictated),
        Operator("line_breaks", "benign", _line_breaks),
    )
