"""`verify-tape`: run the recorded program again with the tape in the world's place, and compare everything.

Compared are every request (by the mode's fingerprint), every reply by having been served as recorded, the order within
each lane, what was asked once more or no longer, the output and how the program ended. The tape is rebuilt meanwhile,
and where not even a volatile token differs, both digests are the same.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flakestorm.api.options import Options
from flakestorm.api.project import Project, load
from flakestorm.api.recording import line_of
from flakestorm.api.replaying import Loaded, drawing_for, load_tape
from flakestorm.core.clock import Clock
from flakestorm.core.draws import Draws
from flakestorm.core.ledger import Ledger
from flakestorm.errors import Misuse
from flakestorm.tape.match import Mode
from flakestorm.tape.player import Player
from flakestorm.tape.writer import Recorder

__all__ = ["Verified", "verify"]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verified replay proved.

    Args:
        recorded: how many exchanges the tape holds; with none there was nothing to verify.
        requests: of the replay, how many there were of each outcome.
        differences: what is not as recorded, in words.
        digests: of the tape, and of the one that was rebuilt.
    """

    recorded: int
    requests: Mapping[str, int] = field(default_factory=dict)
    differences: Sequence[str] = ()
    digests: tuple[str, str] = ("", "")

    @property
    def exit_code(self) -> int:
        """0 equal, 1 different, 3 nothing to verify."""
        return 3 if not self.recorded else 1 if self.differences else 0


def verify(
    tape: Path,
    argv: Sequence[str] = (),
    *,
    project: Project | None = None,
    mode: Mode | None = None,
    allow_live: bool = False,
    tools: Sequence[tuple[str, str]] = (),
) -> Verified:
    """Replay a tape and compare.

    Args:
        tape: the tape.
        argv: the command to run; the recorded one where empty.
        project: whose agent is asked where no command was recorded.
        mode: how requests are matched; by default what the project says.
        allow_live: whether a request that the tape does not answer goes to the world; it differs all the same.
        tools: (name, URL glob) pairs that name plain-HTTP tools.

    Raises:
        TapeDamaged: the tape was edited, cut short or added to.
        Misuse: nothing is known that could be run again.
    """
    loaded = load_tape(tape, mode=mode or "renamed")
    if not loaded.matcher.entries:
        return Verified(0)
    player = loaded.player(allow_live=allow_live)
    command = loaded.tape.header.get("command")
    recorded: Mapping[str, Any] = command if isinstance(command, dict) else {}
    if argv or recorded.get("argv"):
        told, digest = _command(loaded, player, argv, recorded, tools)
    else:
        told, digest = _agent(loaded, player, project, recorded)
    outcomes: Counter[str] = Counter(played.match.outcome for played in player.played)
    differences = [*player.problems, *player.missing(), *told]
    return Verified(len(loaded.matcher.entries), outcomes, differences, (loaded.footer.digest, digest))


def _command(
    loaded: Loaded,
    player: Player,
    argv: Sequence[str],
    recorded: Mapping[str, Any],
    tools: Sequence[tuple[str, str]],
) -> tuple[list[str], str]:
    from flakestorm.api.carrying import in_a_loop
    from flakestorm.api.launching import demand, launch

    said = recorded.get("argv")
    words = [str(word) for word in argv or (said if isinstance(said, list) else ())]
    cwd = Path.cwd() if argv else Path(str(recorded.get("cwd") or "."))
    demand(words, cwd)
    clock = Clock(time.perf_counter, skips=False)
    recorder = Recorder(None, clock=clock.now, ledger=Ledger(), header={}, keep=False)
    drawing = drawing_for(player, loaded.tape)
    line = line_of("verify", recorder, clock, tools, (player.stage,), drawing)
    stdin = loaded.footer.stdin or b""
    ran = in_a_loop(lambda: launch(words, cwd=cwd, line=line, stdin=stdin, quiet=True))
    if ran.interrupted:
        raise KeyboardInterrupt
    recorder.close(output=ran.output, error=ran.error)
    return _compared(loaded, ran.output, ran.error), recorder.digest or ""


def _agent(
    loaded: Loaded, player: Player, project: Project | None, recorded: Mapping[str, Any]
) -> tuple[list[str], str]:
    from flakestorm.api.asking import ask
    from flakestorm.tape.reader import Tape

    text = loaded.tape.input
    if text is None:
        raise Misuse(f"{loaded.tape.path} names no command to run again; give one: verify-tape TAPE -- COMMAND")
    if project is None and isinstance(recorded.get("config"), str):
        project = load(recorded["config"])
    if project is None:
        raise Misuse(f"{loaded.tape.path} was given an input; name the config of its agent with -c")
    with tempfile.TemporaryDirectory(prefix="flakestorm-") as folder:
        rebuilt = Path(folder, "rebuilt.tape")
        run = ask(project, text, rebuilt, Options(seed=0), draws=Draws.of(loaded.tape.header), player=player)
        footer = Tape.open(rebuilt).footer
    return _compared(loaded, run.output, run.error), footer.digest if footer else ""


def _compared(loaded: Loaded, output: str, error: str | None) -> list[str]:
    """What differs in how the program ended."""
    found: list[str] = []
    footer = loaded.footer
    if (error is None) != (footer.error is None) or not loaded.matcher.same(footer.error or "", error or ""):
        found.append(f"it ended otherwise: {footer.error or 'without an error'} -> {error or 'without an error'}")
    if not loaded.same_output(output):
        found.append(f"the output is another one: {_shown(footer.output, output)}")
    return found


def _shown(old: str, new: str) -> str:
    from flakestorm.tape.difference import differences

    return differences(old, new)[0].removeprefix("body: ")
