"""`Draws`: what an agent's clock and random draws follow from, where they are virtual.

Two runs with the same draws read the same times and draw the same uuids, so what still differs between them is the
agent's own doing. They are kept in a tape's header and given back when it is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flakestorm.core.record import Record
from flakestorm.errors import TapeDamaged

__all__ = ["Draws"]

_SEEDS = 2**63
_FORMS = (1, 2)
_LAST_MS = 253_402_300_799_000  # the end of the year 9999, where datetime ends


class Draws(Record, frozen=True):
    """Where the draws of a run begin.

    Args:
        seed: from 0, below 2**63.
        epoch_ms: where the clock stands at first, in milliseconds since 1970.
        form: how they are made; the first form is that of old tapes. There, jobs that enter a copy of one context draw
            on one lane, and the calls of launched agents are told apart by their connections alone.
    """

    seed: int
    epoch_ms: int
    form: int = 2

    @property
    def header(self) -> dict[str, int]:
        """As a tape's header keeps it, under `draws`."""
        return {"seed": self.seed, "epoch_ms": self.epoch_ms, "form": self.form}

    @property
    def hash_seed(self) -> str:
        """PYTHONHASHSEED, of which the order of sets in Python agents follows."""
        return str(self.seed % 2**32)

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> Draws | None:
        """Those of a tape; None where its run had real ones.

        Args:
            header: the tape's.

        Raises:
            TapeDamaged: what stands there are no draws.
        """
        kept = header.get("draws")
        if kept is None:
            return None
        told = kept if isinstance(kept, dict) else {}
        seed, epoch_ms, form = told.get("seed"), told.get("epoch_ms"), told.get("form", 1)
        if not (
            (type(seed) is int and 0 <= seed < _SEEDS)
            and (type(epoch_ms) is int and 0 <= epoch_ms <= _LAST_MS)
            and (type(form) is int and form in _FORMS)
        ):
            raise TapeDamaged(f"the tape's header has draws that cannot be made again: {str(kept)[:200]}")
        return cls(seed, epoch_ms, form)
