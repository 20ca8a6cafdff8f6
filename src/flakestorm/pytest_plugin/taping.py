"""The fixture `tape`: record once, replay ever after.

With `--flakestorm-record` the calls of a test go out and onto tapes beside it, `tapes/<module>/<test>.tape`; without,
these tapes answer and nothing goes out. Where the test also has `agent_run`, each run of the agent has a tape of its
own, `<test>.1.tape` and so on, which stands in the world's place, further in than the faults.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flakestorm.api.recording import folder_for, line_of, record
from flakestorm.api.replaying import drawing_for, load_tape, of_the_world
from flakestorm.boundary import inprocess
from flakestorm.boundary.draws import held
from flakestorm.core.clock import Clock
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Interceptor
from flakestorm.errors import FlakestormError, Misuse, TapeDamaged
from flakestorm.pytest_plugin.agents import agents_of, slug
from flakestorm.pytest_plugin.marks import Mark, config_file
from flakestorm.pytest_plugin.notes import TAPED, TRIAL
from flakestorm.pytest_plugin.runs import refuse
from flakestorm.tape.player import Player
from flakestorm.tape.reader import Tape
from flakestorm.tape.writer import Recorder

if TYPE_CHECKING:
    from flakestorm.api.recording import Recording
    from flakestorm.contracts.calls import ToolCall
    from flakestorm.tape.model import Exchange

__all__ = ["HeldTape", "Stand", "held_tape"]


@dataclass(frozen=True, slots=True)
class Stand:
    """What stands in the world's place for one run of the agent.

    Args:
        path: the tape to write; None where one is played.
        within: the stages that play it.
        seed: the recording's, so that the same faults fire; None where one is recorded.
    """

    path: Path | None = None
    within: Sequence[Interceptor] = ()
    seed: int | None = None


class HeldTape:
    """A test's tapes: those it records, or those that answer it.

    Args:
        path: of the test's own calls.
        again: the command that records them.
        recording: whether they are recorded now.
        tools: (name, URL glob) pairs that name plain-HTTP tools.
        redact: what else is secret; see `record`.
    """

    def __init__(
        self,
        path: Path,
        again: str,
        *,
        recording: bool,
        tools: Sequence[tuple[str, str]] = (),
        redact: Sequence[str] = (),
    ) -> None:
        self.path, self.recording = path, recording
        self._again, self._tools, self._redact = again, tools, redact
        self._runs = 0
        self._players: list[tuple[Path, Player]] = []
        self._written: Recording | Recorder | None = None

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """The test's own calls so far, in order of arrival."""
        return () if self._written is None else self._written.exchanges

    def calls(self, tool: str = "*") -> list[ToolCall]:
        """Those of them that are calls of the tools that this name or glob means."""
        from flakestorm.contracts.base import RunView

        return RunView(input="", exchanges=self.exchanges).calls(tool)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While entered, the calls of this context are recorded, or answered by the tape."""
        try:
            if self.recording:
                folder_for(self.path)
            else:
                player, tape = self._player(self.path, world=False)
        except FlakestormError as error:
            refuse(error)
        if self.recording:
            with record(self.path, tools=dict(self._tools), redact=self._redact) as self._written:
                yield
            return
        clock = Clock(time.perf_counter, skips=False)
        recorder = self._written = Recorder(None, clock=clock.now, ledger=Ledger(), header={})
        drawing = drawing_for(player, tape)
        line = line_of("replay", recorder, clock, self._tools, (player.stage,), drawing)
        try:
            with inprocess.held(), held() if drawing is not None else nullcontext(), line.active():
                yield
        finally:
            recorder.close()

    def stand(self) -> Stand:
        """What stands in the world's place for the next run of the agent.

        Raises:
            Misuse: there is no tape of it.
            TapeDamaged: it cannot be trusted.
            TapeError: it cannot be written.
        """
        self._runs += 1
        path = self.path.with_suffix(f".{self._runs}.tape")
        if self.recording:
            folder_for(path)
            return Stand(path)
        player, tape = self._player(path, world=True)
        seed = tape.header.get("seed")
        return Stand(within=(player.stage,), seed=seed if isinstance(seed, int) else None)

    def problems(self) -> list[str]:
        """In what the test differs from its recording, so far."""
        return [f"{path.name}: {problem}" for path, player in self._players for problem in player.problems]

    def check(self) -> None:
        """End a test that got through, and did otherwise than recorded, as failed."""
        missing = [f"{path.name}: {each}" for path, player in self._players for each in player.missing()]
        if problems := [*self.problems(), *missing]:
            pytest.fail(self.told(problems), pytrace=False)

    def told(self, problems: Sequence[str]) -> str:
        """What differs, and what to do about it."""
        lines = "\n  ".join(problems)
        return f"the test did otherwise than its tape:\n  {lines}\nif that is right, record it again: {self._again}"

    def _player(self, path: Path, *, world: bool) -> tuple[Player, Tape]:
        if not path.is_file():
            raise Misuse(f"there is no tape at {path}, and nothing goes out without one; record it: {self._again}")
        try:
            loaded = load_tape(path, pick=of_the_world) if world else load_tape(path)
        except TapeDamaged as error:
            raise TapeDamaged(f"{error}; record it again: {self._again}") from error
        player = loaded.player()
        self._players.append((path, player))
        return player, loaded.tape


def held_tape(request: pytest.FixtureRequest) -> HeldTape:
    """The fixture's value for this test."""
    item: pytest.Item = request.node
    again = f"pytest --flakestorm-record {item.nodeid!r}"
    recording = bool(request.config.getoption("--flakestorm-record"))
    path = place(item, item.stash.get(TRIAL, 1), recording=recording)
    try:
        tools, redact = _told(request, item)
        tape = HeldTape(path, again, recording=recording, tools=tools, redact=redact)
    except FlakestormError as error:
        refuse(error)
    item.stash[TAPED] = tape
    return tape


def place(item: pytest.Item, trial: int, *, recording: bool) -> Path:
    """Where a test's tape lies: `tapes/<module>/<test>.tape` beside it, with its classes before its name.

    No two tests share one: a name that had to be changed to be a file's, in more than its brackets, has a sign of what
    it was. A tape that an earlier version wrote, which knew neither, is played where there is no other.
    """
    whole = ".".join([*_classes(item), item.name])
    named, earlier = slug(whole), slug(item.name)
    if named != re.sub(r"[][]", "-", whole).strip("-"):
        named += "-" + hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    folder, end = item.path.parent / "tapes" / slug(item.path.stem), (f".t{trial}" if trial > 1 else "") + ".tape"
    path, old = folder / f"{named}{end}", folder / f"{earlier}{end}"
    return old if not recording and not path.exists() and old.exists() else path


def _classes(item: pytest.Item) -> list[str]:
    return [node.name for node in item.listchain() if isinstance(node, pytest.Class)]


def _told(request: pytest.FixtureRequest, item: pytest.Item) -> tuple[Sequence[tuple[str, str]], Sequence[str]]:
    """The names that the config gives to plain-HTTP tools, and what else is secret to it, where there is a config."""
    from flakestorm.config import tools_of

    try:
        mark = Mark.of(item)
        path = config_file(item, mark.config)
    except Misuse:
        return (), ()
    config = agents_of(request).project(path).config
    return tools_of(config), config.boundary.redact
