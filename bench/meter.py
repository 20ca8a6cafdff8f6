"""CPU per call of one arm over another. Standard library only: it also runs in the environments of peers."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

__all__ = ["Block", "added", "first_token_ratio"]

Block = Callable[[], AbstractContextManager[Callable[[], None]]]
"""Entering it prepares an arm; what it gives is the work to measure."""


def added(bare: Block, recorded: Block, *, calls: int, rounds: int) -> dict[str, float]:
    """Microseconds of process CPU per call: of the bare arm, and how much more the other one takes.

    The arms take turns and each round is a pair; given is the median. The first round warms up and does not count.

    Args:
        calls: how many calls each arm's work makes.
    """
    pairs = [(_cpu_us(bare) / calls, _cpu_us(recorded) / calls) for _ in range(rounds + 1)][1:]
    return {
        "bare_us": statistics.median(before for before, _ in pairs),
        "added_us": statistics.median(after - before for before, after in pairs),
    }


def first_token_ratio(bare: Callable[[], float], recorded: Callable[[], float], *, rounds: int) -> float:
    """How many times longer the recorded arm waits for a stream's first token; the median over pairs."""
    return statistics.median([recorded() / bare() for _ in range(rounds + 1)][1:])


def _cpu_us(arm: Block) -> float:
    with arm() as work:
        gc.collect()
        start = time.process_time()
        work()
        return (time.process_time() - start) * 1e6
