"""Hashes of texts that go on, each from the one before: of a growing conversation, only what is new is hashed."""

from __future__ import annotations

import hashlib
from typing import Any

from flakestorm.core.call import track
from flakestorm.tape.delta import common_prefix, common_suffix
from flakestorm.wire.growing import LONG

__all__ = ["Hashes"]

_PLACES = 16


class Hashes:
    """SHA-256 of texts of which each may go on from the one before, of the same place: a lane, see `track`."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[bytes, int, Any]] = {}

    def of(self, place: str, data: bytes) -> bytes:
        """The hash of a text."""
        if len(data) < LONG:
            return hashlib.sha256(data).digest()
        last, done, state = self._last.get(place) or self._last.get(track(place)) or (b"", 0, None)
        view = memoryview(data)
        if state is None or not data.startswith(memoryview(last)[:done]):
            done, state = 0, hashlib.sha256()
        else:
            state = state.copy()
        known = common_prefix(last, data, done)
        kept = max(done, len(data) - common_suffix(last, data, min(len(last), len(data)) - known))
        state.update(view[done:kept])
        whole = state.copy()
        whole.update(view[kept:])
        if len(self._last) >= _PLACES and place not in self._last:
            self._last.clear()
        self._last[place] = self._last[track(place)] = data, kept, state
        return bytes(whole.digest())
