"""Replaying: a tape answers in the world's place, and what differs from the recording is told."""

from __future__ import annotations

import gc
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from flakestorm.api.recording import globs_of, line_of, moment, run_here
from flakestorm.boundary.draws import Drawing, held
from flakestorm.core.clock import Clock
from flakestorm.core.draws import Draws
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.site import Site
from flakestorm.errors import Misuse, TapeDamaged, TapeError, TapeMismatch
from flakestorm.tape.lanes import CONNECTIONS
from flakestorm.tape.lines import FILE
from flakestorm.tape.match import Matcher, Mode
from flakestorm.tape.model import Exchange
from flakestorm.tape.player import Player
from flakestorm.tape.reader import Footer, Tape
from flakestorm.tape.rebuilt import Rebuilt
from flakestorm.tape.redact import Redactor
from flakestorm.tape.said import Said, digest
from flakestorm.tape.telling import Telling
from flakestorm.tape.tokens import Span
from flakestorm.tape.writer import Recorder

__all__ = ["Loaded", "drawing_for", "load_tape", "of_the_world", "replay", "spans_of"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A tape that was read whole and found undamaged.

    Args:
        tape: the tape.
        footer: how its run ended.
        matcher: knows its exchanges.
        redactor: takes secrets out of the replay, as they were taken out of the recording.
        telling: compares with the tape what it leaves.
        digest: of what was asked and said, as a rebuilt tape has it.
    """

    tape: Tape
    footer: Footer
    matcher: Matcher
    redactor: Redactor
    telling: Telling
    digest: str

    def player(self, *, allow_live: bool = False, until: Site | None = None, then: Interceptor | None = None) -> Player:
        """What plays this tape; see `Player`."""
        return Player(self.matcher, allow_live=allow_live, until=until, then=then, telling=self.telling)

    def same_output(self, output: str) -> bool:
        """Whether the output is the recorded one, volatile tokens renamed."""
        return self.same(self.footer.output, output)

    def same(self, recorded: str, present: str) -> bool:
        """Whether two texts are, secrets and volatile tokens apart."""
        return self.matcher.same(self.telling.text(recorded), self.telling.text(present))

    @property
    def input(self) -> str | None:
        """What the recorded run was given, with the secrets that are known here."""
        given = self.tape.input
        return None if given is None else self.telling.real(given)


def load_tape(
    path: str | Path,
    *,
    mode: Mode = "renamed",
    known: Iterable[str] | None = None,
    patterns: Iterable[str] = (),
    pick: Callable[[Exchange], Iterable[Exchange]] = lambda exchange: (exchange,),
) -> Loaded:
    """Read a tape to its end and check it; what is kept of it grows with new text only.

    Args:
        path: the tape.
        mode: how requests are matched.
        known, patterns: secrets, as for `Redactor`.
        pick: gives what is to be matched of an exchange, where that is not the exchange itself, as the agent saw it.

    Raises:
        Misuse: there is no such mode.
        TapeDamaged: it was edited, cut short or added to.
    """
    if mode not in get_args(Mode):
        raise Misuse(f"there is no mode {mode!r} of matching; known: {', '.join(get_args(Mode))}")
    tape = Tape.open(path)
    redactor = tape.redactor(known=known, patterns=patterns)
    telling = Telling(redactor if tape.key is not None else None)
    said, other = Said(tape.form), tape.form != FILE
    recorded, present = _recorded(tape.header), _present()
    told: dict[int, bytes] = {}

    def read() -> Iterator[Exchange]:
        nonlocal other
        for exchange in tape:
            each = said.add(exchange)
            ended_s = recorded.begin_s + (exchange.t_ms + exchange.duration_ms) / 1000
            recorded.end_s = max(recorded.end_s, ended_s)
            clean = telling.taped(exchange)
            other = other or clean is not exchange
            for picked in pick(clean):
                if picked is exchange and tape.form == FILE:
                    told[exchange.n] = b"" if exchange.n in told else each  # a number is said once on a tape of ours
                yield picked

    threads = tape.header.get("lanes") != CONNECTIONS
    with _uncollected():
        matcher = Matcher(read(), mode=mode, spans=(recorded, present), threads=threads)
    for entry in matcher.entries:
        entry.said = told.get(entry.n, b"")
    footer = tape.footer
    if footer is None:
        raise TapeDamaged(f"{path} is cut short: it has no footer, so the recording was interrupted or its end is gone")
    if said.total(footer.output) != footer.digest:
        raise TapeDamaged(f"{path}: the exchanges are not those its digest was made of; it was edited")
    again = digest(map(telling.taped, tape), telling.text(footer.output)) if other else footer.digest
    return Loaded(tape, footer, matcher, redactor, telling, again)


@contextmanager
def _uncollected() -> Iterator[None]:
    """While entered, no garbage is looked for; then all that is there counts as old. What a tape is read into is kept,
    all of it, and looking through it time and again while it grows would find nothing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():  # else somebody's own frozen objects would thaw
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def of_the_world(exchange: Exchange) -> Iterator[Exchange]:
    """What the world was asked and said, as often as it was asked; nothing where a fault answered. A player stands
    further in than the faults, so those of the recording can be played over it again."""
    by_a_fault = exchange.faults and exchange.world is None
    if exchange.sent == 1 and not exchange.faults and exchange.world is None and exchange.world_body is None:
        yield exchange  # as most are; one that is made anew holds the whole body
        return
    body = exchange.body if exchange.world_body is None else exchange.world_body
    said = replace(exchange, body=body, world_body=None, reply=exchange.world or exchange.reply, world=None, faults=())
    for _ in range(exchange.sent or (0 if by_a_fault else 1)):
        yield said


def replay(
    tape: str | Path,
    fn: Callable[..., Any],
    *,
    mode: Mode = "renamed",
    allow_live: bool = False,
    tools: Mapping[str, str] | None = None,
) -> Any:
    """Call a function whose calls are answered by a tape: `fn(input)` if the tape has an input, else `fn()`.

    An async function is run to its end; called where an event loop runs, the result is to be awaited.

    Args:
        tape: the tape.
        fn: what was recorded.
        mode: `renamed` lets ids and times be new ones, `strict` nothing, `scored` also lets plain words change.
        allow_live: whether a request that the tape does not answer is let through; it is a mismatch all the same.
        tools: names of plain-HTTP tools, as they were given to `record`.

    Returns:
        What the function returns.

    Raises:
        Misuse: there is no such mode, or an argument is of another kind.
        TapeMismatch: a request, the order of requests or the output is not what was recorded; raised at the end, even
            where the function has swallowed the error that it got.
        TapeDamaged: the tape cannot be trusted.
        TapeError: it holds nothing to compare with.
    """
    if not callable(fn):
        raise Misuse(f"{fn!r} cannot be called; give the function that was recorded")
    loaded = load_tape(tape, mode=mode)
    if not loaded.matcher.entries:
        raise TapeError(f"{tape} holds no exchange, so there is nothing to verify; record a run that makes calls")
    player = loaded.player(allow_live=allow_live)
    given = () if loaded.input is None else (loaded.input,)
    globs = globs_of(tools)
    if not inspect.iscoroutinefunction(fn):
        with _judged(loaded, player, globs, live=allow_live) as done:
            value = fn(*given)
            if not inspect.isawaitable(value):
                return done(value)
        return run_here(_awaited(lambda: value, loaded, player, globs, live=allow_live))
    return run_here(_awaited(lambda: fn(*given), loaded, player, globs, live=allow_live))


async def _awaited(
    work: Callable[[], Any], loaded: Loaded, player: Player, tools: Sequence[tuple[str, str]], *, live: bool
) -> Any:
    with _judged(loaded, player, tools, live=live) as done:
        return done(await work())


@contextmanager
def _judged(
    loaded: Loaded, player: Player, tools: Sequence[tuple[str, str]], *, live: bool
) -> Iterator[Callable[[Any], Any]]:
    """While entered, calls are answered by the tape; a mismatch is raised at the end, whatever else is.

    Args:
        live: whether the world may be asked.
    """
    from flakestorm.boundary import inprocess

    clock = Clock(time.perf_counter, skips=False)
    recorder = Recorder(None, clock=clock.now, ledger=Ledger(), header={}, keep=False, redactor=loaded.redactor)
    rebuilt = Rebuilt(recorder)
    within = (player.stage,) if live else (rebuilt.outer, player.stage)
    drawing = drawing_for(player, loaded.tape)
    values: list[Any] = []

    def done(value: Any) -> Any:
        values.append(value)
        return value

    try:
        with (
            inprocess.held(),
            held() if drawing is not None else nullcontext(),
            line_of("replay", recorder if live else None, clock, tools, within, drawing).active(),
        ):
            yield done
    except Exception as error:
        if player.problems:
            raise TapeMismatch(player.problems) from error
        raise
    finally:
        rebuilt.close()
    if not values:  # it is to be awaited yet
        return
    problems = [*player.problems, *player.missing(), *_output(loaded, values[0])]
    if problems:
        raise TapeMismatch(problems)


def _output(loaded: Loaded, value: Any) -> list[str]:
    """What is wrong with the output, where the tape has one to compare with."""
    footer = loaded.footer
    if not footer.output or footer.error is not None:
        return []
    from flakestorm.agents.reading import read_value

    said = read_value(value, None)
    if isinstance(said, str) and loaded.same_output(said):
        return []
    present = loaded.telling.text(str(said))
    return [f"the output is another one: {footer.output[:200]!r} -> {present[:200]!r}"]


def drawing_for(player: Player, tape: Tape) -> Drawing | None:
    """The draws of a recorded run, made again, with the clock in the player's hands; None where they were real.

    Raises:
        TapeDamaged: those that the tape has cannot be made.
    """
    draws = Draws.of(tape.header)
    if draws is None:
        return None
    drawing = Drawing(draws, live=False)
    player.recall = drawing.recall
    return drawing


def spans_of(header: Mapping[str, Any], exchanges: Iterable[Exchange]) -> tuple[Span, Span]:
    """When a recording took place, and when its replay does."""
    recorded = _recorded(header)
    for exchange in exchanges:
        recorded.end_s = max(recorded.end_s, recorded.begin_s + (exchange.t_ms + exchange.duration_ms) / 1000)
    return recorded, _present()


def _recorded(header: Mapping[str, Any]) -> Span:
    try:
        begin_s = datetime.fromisoformat(str(header.get("started_at"))).timestamp()
    except (ValueError, OverflowError, OSError):
        begin_s = 0.0
    offset = header.get("utc_offset_s")
    return Span(begin_s, begin_s, float(offset) if isinstance(offset, (int, float)) else 0.0)


def _present() -> Span:
    now = _recorded(moment())
    return Span(now.begin_s, now.end_s + 6 * 3600, now.offset_s)  # a replay may take its time
