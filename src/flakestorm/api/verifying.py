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

from flakestorm.api.options import Options
from flakestorm.api.project import Project
from flakestorm.api.recording import line_of
from flakestorm.api.redaction import known_to
from flakestorm.api.replaying import Loaded, drawing_for, load_tape
from flakestorm.api.trusting import Approve, demand
from flakestorm.core.clock import Clock
from flakestorm.core.draws import Draws
from flakestorm.core.ledger import Ledger
from flakestorm.errors import Misuse
from flakestorm.tape.match import Mode
from flakestorm.tape.origin import Named, named_by
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
    approve: Approve | None = None,
) -> Verified:
    """Replay a tape and compare.

    Args:
        tape: the tape.
        argv: the command to run; the recorded one where empty.
        project: whose agent is asked where no command was recorded.
        mode: how requests are matched; by default what the project says.
        allow_live: whether a request that the tape does not answer goes to the world; it differs all the same.
        tools: (name, URL glob) pairs that name plain-HTTP tools.
        approve: as for `trusting.demand`.

    Raises:
        TapeDamaged: the tape was edited, cut short or added to.
        Misuse: nothing is known that could be run again, or it may not be.
    """
    config = None if project is None else project.config
    loaded = load_tape(
        tape,
        mode=mode or "renamed",
        known=None if config is None else known_to(config),
        patterns=() if config is None else config.boundary.redact,
    )
    if not loaded.matcher.entries:
        return Verified(0)
    demand(loaded.tape, argv=argv, config=config, approve=approve)
    player, named = loaded.player(allow_live=allow_live), named_by(loaded.tape) or Named()
    if argv or named.argv:
        told, digest = _command(loaded, player, argv, named, tools)
    else:
        told, digest = _agent(loaded, player, project, named)
    outcomes: Counter[str] = Counter(played.match.outcome for played in player.played)
    differences = [*player.problems, *player.missing(), *told]
    return Verified(len(loaded.matcher.entries), outcomes, differences, (loaded.digest, digest))


def _command(
    loaded: Loaded,
    player: Player,
    argv: Sequence[str],
    named: Named,
    tools: Sequence[tuple[str, str]],
) -> tuple[list[str], str]:
    from flakestorm.api.launching import demand as there_must_be
    from flakestorm.api.launching import launch
    from flakestorm.api.loops import in_a_loop

    words = list(argv) or [loaded.telling.real(word) for word in named.argv]
    cwd = Path.cwd() if argv else Path(named.cwd)
    there_must_be(words, cwd)
    clock = Clock(time.perf_counter, skips=False)
    recorder = Recorder(None, clock=clock.now, ledger=Ledger(), header={}, keep=False, redactor=loaded.redactor)
    drawing = drawing_for(player, loaded.tape)
    line = line_of("verify", recorder, clock, tools, (player.stage,), drawing)
    stdin = loaded.redactor.real(loaded.footer.stdin or b"")
    ran = in_a_loop(lambda: launch(words, cwd=cwd, line=line, stdin=stdin, quiet=True))
    if ran.interrupted:
        raise KeyboardInterrupt
    recorder.close(output=ran.output, error=ran.error)
    return _compared(loaded, ran.output, ran.error), recorder.digest or ""


def _agent(loaded: Loaded, player: Player, project: Project | None, named: Named) -> tuple[list[str], str]:
    from flakestorm.api.asking import ask, named_project
    from flakestorm.tape.reader import Tape

    text = loaded.input
    if text is None:
        raise Misuse(f"{loaded.tape.path} names no command to run again; give one: verify-tape TAPE -- COMMAND")
    project = project or named_project(loaded.tape.path, named)
    with tempfile.TemporaryDirectory(prefix="flakestorm-") as folder:
        rebuilt = Path(folder, "rebuilt.tape")
        run = ask(
            project,
            text,
            rebuilt,
            Options(seed=0),
            draws=Draws.of(loaded.tape.header),
            player=player,
            redactor=loaded.redactor,
        )
        footer = Tape.open(rebuilt).footer
    return _compared(loaded, run.output, run.error), footer.digest if footer else ""


def _compared(loaded: Loaded, output: str, error: str | None) -> list[str]:
    """What differs in how the program ended."""
    found: list[str] = []
    footer = loaded.footer
    if (error is None) != (footer.error is None) or not loaded.same(footer.error or "", error or ""):
        ended = loaded.telling.text(error or "without an error")
        found.append(f"it ended otherwise: {footer.error or 'without an error'} -> {ended}")
    if not loaded.same_output(output):
        found.append(f"the output is another one: {_shown(footer.output, loaded.telling.text(output))}")
    return found


def _shown(old: str, new: str) -> str:
    from flakestorm.tape.difference import differences

    return differences(old, new)[0].removeprefix("body: ")
