"""Virtual draws: an agent's clock, uuids and random numbers follow from `Draws`, here and in launched agents.

What replaces the functions is the shim's own code (`shim/flakestorm_shim/`: lanes, moments, chance), so an agent draws
the same in either place. Here a call belongs to the run of its context, and one that belongs to none stays real:
flakestorm's own, other runs', the event loop's.

`Dial` is how a launched agent is told: a small file, mapped on both sides.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from flakestorm.boundary.seams.patches import Counted
from flakestorm.boundary.session import current
from flakestorm.core.choices import entropy_seed
from flakestorm.core.draws import Draws

__all__ = ["LANES", "VARIABLE", "Dial", "Drawing", "fresh", "held", "install", "uninstall"]

VARIABLE = "FLAKESTORM_DRAWS"
"""Environment variable that tells the shim `SEED:EPOCH_MS:FILE`."""

LANES = "FLAKESTORM_LANES"
"""Environment variable that tells the shim of the file alone: by it, it knows one run from the next."""

_SHIM = "flakestorm.boundary.shim.flakestorm_shim"
_LAYOUT = struct.Struct("=5q")  # which run, seed, epoch in ms, elapsed in us, form


def fresh() -> Draws:
    """Draws of a run that begins now and is the first of its kind."""
    return Draws(entropy_seed(), time.time_ns() // 1_000_000)


class Drawing:
    """The virtual draws of one run, and where its clock stands.

    The clock goes from reply to reply: `reach` is told of the live ones. On replay, `recall` is told
    when they happened in the recorded run, and the live ones do not count, until `go_live`.

    Args:
        draws: where they begin.
        live: False on replay.
    """

    def __init__(self, draws: Draws, *, live: bool = True) -> None:
        self.draws, self._live = draws, live
        self._elapsed_us, self._ahead_us, self._reached_us = 0, 0, 0
        self._dial: Dial | None = None
        self._run: Any = None
        self._lane_in: Any = None

    @property
    def elapsed_ms(self) -> float:
        """How far the clock has come."""
        return self._elapsed_us / 1000

    @property
    def run(self) -> Any:
        """What the functions in this process draw from (`lanes.Run`)."""
        if self._run is None:
            lanes = import_module(f"{_SHIM}.lanes")
            seed, epoch_ms, form = self.draws.seed, self.draws.epoch_ms, self.draws.form
            self._run, self._lane_in = lanes.Run(seed, epoch_ms, _unknown, form=form), lanes.lane_in
        return self._run

    def reach(self, at_ms: float) -> None:
        """A reply begins, or fails to come, at this time of the run."""
        self._reached_us = max(self._reached_us, int(at_ms * 1000))
        if self._live:
            self._go(int(at_ms * 1000) + self._ahead_us)

    def recall(self, at_ms: float) -> None:
        """A reply begins, or fails to come, that did so at this time of the recorded run."""
        self._go(int(at_ms * 1000))

    def go_live(self, at_ms: float | None = None) -> None:
        """The tape has nothing more to say; the clock goes on from where it stands.

        Args:
            at_ms: the time of the run that it is now; that of the last reply where None.
        """
        now_us = self._reached_us if at_ms is None else int(at_ms * 1000)
        self._live, self._ahead_us = True, self._elapsed_us - now_us

    def show_on(self, dial: Dial | None) -> None:
        """Let a launched agent know, from now on, or (None) no more."""
        self._dial = dial
        if dial is not None:
            dial.begin(self.draws, self._elapsed_us)

    def _go(self, elapsed_us: int) -> None:
        if self._run is not None:  # the agent is in this process, and calls come on its lanes
            self._lane_in(self._run).reach(elapsed_us)
        if elapsed_us > self._elapsed_us:
            self._elapsed_us = elapsed_us
            if self._dial is not None:
                self._dial.show(elapsed_us)


def _unknown() -> int:
    """What happens on other lanes is nothing to an agent in this process."""
    return 0


class Dial:
    """What a launched agent's shim reads: which run it is, and where its clock stands, if that is virtual.

    Args:
        draws: what holds before the first run begins; None where its draws are real.
    """

    def __init__(self, draws: Draws | None) -> None:
        file, name = tempfile.mkstemp(prefix="flakestorm-", suffix=".dial")
        try:
            os.write(file, bytes(_LAYOUT.size) if draws is None else _LAYOUT.pack(0, *_said(draws)))
            self._map = mmap.mmap(file, _LAYOUT.size)
        finally:
            os.close(file)
        self._draws, self._path, self._turn = draws, Path(name), 0
        self._view = memoryview(self._map).cast("q")

    @property
    def variables(self) -> dict[str, str]:
        """What goes into the agent's environment."""
        given = {LANES: str(self._path)}
        if self._draws is not None:
            given[VARIABLE] = f"{self._draws.seed}:{self._draws.epoch_ms}:{self._path}"
        return given

    def begin(self, draws: Draws | None, elapsed_us: int = 0) -> None:
        """A run begins; its number is written last, for by that the shim knows."""
        self._turn += 1
        if draws is not None:
            self._view[1], self._view[2], self._view[3], self._view[4] = _said(draws, elapsed_us)
        self._view[0] = self._turn

    def show(self, elapsed_us: int) -> None:
        """The run's clock has come so far."""
        self._view[3] = elapsed_us

    def close(self) -> None:
        """The agent is gone."""
        with suppress(BufferError):
            self._view.release()
            self._map.close()
        self._path.unlink(missing_ok=True)


def _said(draws: Draws, elapsed_us: int = 0) -> tuple[int, int, int, int]:
    return draws.seed, draws.epoch_ms, elapsed_us, draws.form


def _put_in() -> None:
    """Names that other modules have taken over (`from time import time`) are replaced too."""
    lanes, replacing = import_module(f"{_SHIM}.lanes"), import_module(f"{_SHIM}.replacing")
    patches: dict[str, Any] = import_module(f"{_SHIM}.draws").PATCHES
    spawning: dict[str, Any] = import_module(f"{_SHIM}.spawning").PATCHES
    lanes.take_from(_run_here)
    for name, patch in (*patches.items(), *((name, spawning[name]) for name in _LOOPS)):
        module = sys.modules.get(name) or _imported(name)
        if module is not None:
            patch(module)
    replacing.rebind()


def _take_out() -> None:
    import_module(f"{_SHIM}.replacing").put_back()


_replaced = Counted(_put_in, _take_out)

install, uninstall, held = _replaced.install, _replaced.uninstall, _replaced.held
"""What draws is replaced in this process, until the last who wanted it is gone."""

_LOOPS = ("asyncio.base_events", "uvloop")
"""Where tasks begin. The seam in threads (`seams/threads.py`) leads each thread and job onto a lane of its own."""


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:  # uvloop is not everywhere
        return None


def _run_here() -> Any:
    crossing = current()
    return None if crossing is None or crossing.draws is None else crossing.draws.run
