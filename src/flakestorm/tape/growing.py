"""Hashes of texts that go on, each from the one before: of a growing conversation, only what is new is hashed."""

from __future__ import annotations

import hashlib
from typing import Any

from flakestorm.core.call import Repeats, track
from flakestorm.tape.delta import common_prefix, common_suffix
from flakestorm.wire.growing import LONG

__all__ = ["Hashes"]

_PLACES = 16


class Hashes:
    """SHA-256 of texts of which each may go on from the one before, of the same place: a lane, see `track`."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[bytes, int, Any]] = {}

    def of(self, place: str, data: bytes, repeats: Repeats | None = None) -> bytes:
        """The hash of a text.

        Args:
            repeats: what it is known to have in common with an earlier one.
        """
        if len(data) < LONG:
            return hashlib.sha256(data).digest()
        last, done, state = self._last.get(place) or self._last.get(track(place)) or (b"", 0, None)
        view = memoryview(data)
        known = done
        if state is None:
            state = hashlib.sha256()
        elif repeats is not None and repeats[0] is data and repeats[1] is last and repeats[2] >= done:
            known, state = repeats[2], state.copy()
        elif data.startswith(memoryview(last)[:done]):
            state = state.copy()
        else:
            known, done, state = 0, 0, hashlib.sha256()
        known = common_prefix(last, data, known)
        kept = max(done, len(data) - common_suffix(last, data, min(len(last), len(data)) - known))
        state.update(view[done:kept])
        whole = state.copy()
        whole.update(view[kept:])
        if len(self._last) >= _PLACES and place not in self._last:
            self._last.clear()
        self._last[place] = self._last[track(place)] = data, kept, state
        return bytes(whole.digest())
