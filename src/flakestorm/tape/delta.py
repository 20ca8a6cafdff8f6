"""What a text has in common with an earlier one: the parts of it that need not be stored again.

An agent's request repeats the conversation so far, and replies repeat their frame. Parts are found by comparing slices,
at the speed of memcmp, and what is left between the two ends by looking up its pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, compress, count
from operator import ne

__all__ = ["Cut", "Part", "Span", "common_prefix", "common_suffix", "parts_of", "quoted", "replaced"]

Part = bytes | tuple[int, int]
"""New bytes, or (start, end) of bytes of the earlier text. Copies never overlap and never go back, so a text is at most
as long as the earlier one and its new bytes together."""

Span = tuple[int, int, bytes]
"""Where in a text something stands, and what is to stand there instead."""

_STEP = 256
_COARSE = 16 << 10  # between longer ends, only whole objects are looked for
_WORTH = 24  # a copy of fewer bytes costs more than it saves
_PHRASE, _PHRASES = 32, 32  # how long a quoted phrase is at least, and how many are looked for
_SIGNS = b" :,{}[]"
_LONG = 256  # bytes of a value that is worth a closer look


def common_prefix(a: bytes, b: bytes, start: int = 0) -> int:
    """How many bytes both begin with, known to be at least `start`."""
    at, end, step = start, min(len(a), len(b)), _STEP
    if at < end and a[at] != b[at]:
        return at
    while at < end:
        one, other = a[at : at + step], b[at : at + step]
        if one == other:
            at, step = at + step, step * 4
        elif step > _STEP:
            step = _STEP
        else:
            size = min(len(one), len(other))
            differ = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
            return at + size - (differ.bit_length() + 7) // 8
    return end


def common_suffix(a: bytes, b: bytes, limit: int) -> int:
    """How many bytes both end with, at most `limit`."""
    over_a, over_b = len(a), len(b)
    limit = min(limit, over_a, over_b)
    at, step = 0, _STEP
    while at < limit:
        step = min(step, limit - at)
        one, other = a[over_a - at - step : over_a - at], b[over_b - at - step : over_b - at]
        if one == other:
            at, step = at + step, step * 4
        elif step > _STEP:
            step = _STEP
        else:
            differ = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
            return at + step - (differ.bit_length() + 7) // 8
    return limit


def parts_of(old: bytes, new: bytes, prefix: int, suffix: int) -> list[Part]:
    """The new text as parts of the old one and new bytes.

    Args:
        prefix, suffix: what both begin and end with; together no longer than either.
    """
    prefix, suffix = _between_signs(new, prefix, suffix)
    left, right = len(old) - suffix, len(new) - suffix
    parts: list[Part] = [(0, prefix)] if prefix else []
    if left - prefix < _WORTH or right - prefix < _WORTH:
        if right > prefix:
            parts.append(new[prefix:right])
    else:
        _by_pieces(old, prefix, left, new[prefix:right], parts)
    if suffix:
        parts.append((left, len(old)))
    return parts


class Cut:
    """A text, cut at its quotes. Two documents of one form are so made of as many pieces, and most of them are equal.

    Args:
        text: the text.
    """

    __slots__ = ("_ends", "_pieces", "_text")

    def __init__(self, text: bytes) -> None:
        self._text, self._pieces = text, text.split(b'"')
        self._ends = list(accumulate(map(len, self._pieces)))  # without the quotes

    def parts_of(self, later: Cut) -> list[Part] | None:
        """A later text as parts of this one and new bytes; None where they are not of one form."""
        if len(later._pieces) != len(self._pieces):
            return None
        differ = [*compress(count(), map(ne, self._pieces, later._pieces))]
        if len(differ) > 4 + len(self._pieces) // 4:
            return None
        new, parts = later._text, list[Part]()
        told = 0  # how far the new text is told
        here = there = 0  # up to where all before is known to be equal, or told: in the new text and in this one
        for at in differ:
            piece, before = later._pieces[at], self._pieces[at]
            over, beyond = later._ends[at] + at, self._ends[at] + at
            long = len(piece) >= _LONG and len(before) >= _LONG
            head, tail = (0, 0) if long else _signs_around(before, piece) if there else _begin(before, piece)
            begin, until = over - len(piece) + head, beyond - len(before) + head
            if until - there >= _WORTH or (not there and until >= _WORTH // 3):
                if told < here:
                    parts.append(new[told:here])
                parts.append((there, until))
                told = begin
            here, there = over - tail, beyond - tail
            if long:
                if told < begin:
                    parts.append(new[told:begin])
                parts += _within(before, piece, until)
                told = over
        if len(self._text) - there >= _WORTH:
            if told < here:
                parts.append(new[told:here])
            parts.append((there, len(self._text)))
        elif told < len(new):
            parts.append(new[told:])
        return parts


def _within(old: bytes, new: bytes, start: int) -> Iterator[Part]:
    """A long piece as parts of the one in its place, which begins at `start`."""
    prefix = common_prefix(old, new)
    suffix = common_suffix(old, new, min(len(old), len(new)) - prefix)
    for part in parts_of(old, new, prefix, suffix):
        yield part if isinstance(part, bytes) else (start + part[0], start + part[1])


def _begin(old: bytes, new: bytes) -> tuple[int, int]:
    """How many bytes both begin with, as of ids of one kind, in whole characters; nothing is said of their ends."""
    return _between_signs(new, common_prefix(old, new), 0)


def _signs_around(old: bytes, new: bytes) -> tuple[int, int]:
    """How many signs both begin with, and end with, that stand around values: `: 12, ` and `: 7, ` differ in one."""
    head, tail = len(new) - len(new.lstrip(_SIGNS)), len(new) - len(new.rstrip(_SIGNS))
    if not old.startswith(new[:head]):
        head = 0
    if head + tail > min(len(old), len(new)) or not old.endswith(new[len(new) - tail :]):
        tail = 0
    return head, tail


def replaced(text: bytes, spans: list[Span]) -> bytes:
    """The text with something else at these places, which are in order; the very object where there are none."""
    if not spans:
        return text
    parts, at = list[bytes](), 0
    for start, end, instead in spans:
        parts += (text[at:start], instead)
        at = end
    parts.append(text[at:])
    return b"".join(parts)


def _by_pieces(old: bytes, start: int, end: int, new: bytes, parts: list[Part]) -> None:
    """The part between the ends: pieces that occur in the old text, in its order, are copied."""
    cut = b"," if max(end - start, len(new)) <= _COARSE else b"},"
    where: dict[bytes, list[int]] = {}
    at = start
    for piece in old[start:end].split(cut):
        where.setdefault(piece, []).append(at)
        at += len(piece) + len(cut)
    runs: list[tuple[int, int, int]] = []  # from where in new, from where in old, how many bytes
    here, reached, last = 0, start, len(new)
    for piece in new.split(cut):
        length = min(len(piece) + len(cut), last - here)
        at = next((at for at in where.get(piece, ()) if at >= reached), -1)
        if at >= 0 and old[at : at + length] == new[here : here + length] and at + length <= end:
            if runs and runs[-1][0] + runs[-1][2] == here and runs[-1][1] + runs[-1][2] == at:
                runs[-1] = (runs[-1][0], runs[-1][1], runs[-1][2] + length)
            elif length >= _WORTH // 2:
                runs.append((here, at, length))
            reached = at + length if runs and runs[-1][1] + runs[-1][2] == at + length else reached
        here += length
    done, copied = 0, start  # how far the new text is told, and up to where in the old one
    for here, at, length in runs:
        if length < _WORTH:
            continue
        head, tail = _common_words(old[copied:at], new[done:here]) if done else (0, 0)
        if head:
            parts[-1] = parts[-1][0], copied + head  # the copy that ended there
        if done + head < here - tail:
            parts.append(new[done + head : here - tail])
        parts.append((at - tail, at + length))
        done, copied = here + length, at + length
    if done < last:
        head, _ = _common_words(old[copied:end], new[done:]) if done else (0, 0)
        if head:
            parts[-1] = parts[-1][0], copied + head
        parts.append(new[done + head :])


def _common_words(old: bytes, new: bytes) -> tuple[int, int]:
    """How many bytes of whole words two texts begin with, and how many they end with: values are to stay readable."""
    head = common_prefix(old, new)
    while head and head < len(new) and _cuts(new, head):
        head -= 1
    tail = common_suffix(old, new, min(len(old), len(new)) - head)
    while tail and tail < len(new) and _cuts(new, len(new) - tail):
        tail -= 1
    return head, tail


def _cuts(text: bytes, at: int) -> bool:
    """Whether a word, or a character of several bytes, goes on here."""
    return text[at] & 0xC0 == 0x80 or text[at - 1 : at + 1].isalnum()


def quoted(new: bytes, said: Sequence[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """What a text says in quotes that was said before: from where and to where in it, which of those, and from where.

    Args:
        said: earlier texts; the first one that has a phrase is named.
    """
    at = looked = 0
    for phrase in new.split(b'"'):
        end = at + len(phrase)
        if end - at >= _PHRASE:
            looked += 1
            if looked > _PHRASES:
                return
            for number, text in enumerate(said):
                if (begin := text.find(phrase)) >= 0:
                    yield at, end, number, begin
                    break
        at = end + 1


def _between_signs(new: bytes, prefix: int, suffix: int) -> tuple[int, int]:
    """Shorter ends, where a character of several bytes would be cut in two."""
    while prefix and prefix < len(new) and new[prefix] & 0xC0 == 0x80:
        prefix -= 1
    while suffix and new[len(new) - suffix] & 0xC0 == 0x80:
        suffix -= 1
    return prefix, suffix
