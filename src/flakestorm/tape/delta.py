"""What a text has in common with an earlier one: the parts of it that need not be stored again.

An agent's request repeats the conversation so far, and replies repeat their frame. Parts are found by comparing slices,
at the speed of memcmp, and what is left between the two ends by looking up its pieces.
"""

from __future__ import annotations

__all__ = ["Part", "Span", "apply", "common_prefix", "common_suffix", "parts_of", "replaced"]

Part = bytes | tuple[int, int]
"""New bytes, or (start, end) of bytes of the earlier text. Copies never overlap and never go back, so a text is at most
as long as the earlier one and its new bytes together."""

Span = tuple[int, int, bytes]
"""Where in a text something stands, and what is to stand there instead."""

_STEP = 256
_COARSE = 16 << 10  # between longer ends, only whole objects are looked for
_WORTH = 24  # a copy of fewer bytes costs more than it saves


def common_prefix(a: bytes, b: bytes, start: int = 0) -> int:
    """How many bytes both begin with, known to be at least `start`."""
    at, end, step = start, min(len(a), len(b)), _STEP
    while at < end:
        if a[at : at + step] == b[at : at + step]:
            at, step = at + step, step * 4
        elif step == 1:
            return at
        else:
            step = (step + 1) // 2 if step <= _STEP else _STEP
    return end


def common_suffix(a: bytes, b: bytes, limit: int) -> int:
    """How many bytes both end with, at most `limit`."""
    at, step, over_a, over_b = 0, 64, len(a), len(b)
    limit = min(limit, over_a, over_b)
    while at < limit:
        step = min(step, limit - at)
        if a[over_a - at - step : over_a - at] == b[over_b - at - step : over_b - at]:
            at, step = at + step, step * 4
        elif step == 1:
            return at
        else:
            step = (step + 1) // 2 if step <= 64 else 64
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


def apply(old: bytes, parts: list[Part]) -> bytes:
    """The inverse of `parts_of`."""
    return b"".join([part if isinstance(part, bytes) else old[part[0] : part[1]] for part in parts])


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
    done = 0
    for here, at, length in runs:
        if length < _WORTH:
            continue
        if here > done:
            parts.append(new[done:here])
        parts.append((at, at + length))
        done = here + length
    if done < last:
        parts.append(new[done:])


def _between_signs(new: bytes, prefix: int, suffix: int) -> tuple[int, int]:
    """Shorter ends, where a character of several bytes would be cut in two."""
    while prefix and prefix < len(new) and new[prefix] & 0xC0 == 0x80:
        prefix -= 1
    while suffix and new[len(new) - suffix] & 0xC0 == 0x80:
        suffix -= 1
    return prefix, suffix
