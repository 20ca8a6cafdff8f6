"""One fork under way: what is changed where, what holds the clock, and what came of it.

The child is a tape of its own. Its header says what it was forked from (`parent`: file, digest, site, change), and its
times go on from those of the recording, as the agent's own clock does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flakestorm.api.recording import folder_for
from flakestorm.api.replaying import spans_of
from flakestorm.boundary.draws import Drawing
from flakestorm.boundary.session import outside
from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.draws import Draws
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.site import Site
from flakestorm.engine.hooks import Inside
from flakestorm.errors import CallFailed, FlakestormError, Misuse, TapeMismatch, WorldFailed
from flakestorm.tape.fork import TOOLS, Fork, Tools, giving
from flakestorm.tape.history import Histories, kept_by_provider
from flakestorm.tape.lanes import CONNECTIONS
from flakestorm.tape.match import Mode
from flakestorm.tape.model import Exchange
from flakestorm.tape.reader import Tape
from flakestorm.tape.telling import Telling

if TYPE_CHECKING:
    from flakestorm.faults.staging import Stage

__all__ = ["Change", "Ended", "Environment", "Forked", "Forking", "fork_of"]

Environment = Literal["pure", "snapshot", "unrestored"]
"""What the tools after the fork found: nothing was asked of them; what `restore` put there; or whatever was there."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is changed at the site; nothing is resampling: the world is asked again.

    Args:
        reply: the whole body of another reply.
        fault: as `--inject` has it behind the site. It acts on the recorded reply; one that changes what a model is
            told has the model asked again.
        model: the name of another model of the same provider.
    """

    reply: bytes | None = None
    fault: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.reply, self.fault, self.model)) > 1:
            raise Misuse("one fork makes one change: another reply, a fault, another model, or none (resample)")

    def __str__(self) -> str:
        if self.reply is not None:
            return "another reply"
        return f"fault {self.fault}" if self.fault else f"model {self.model}" if self.model else "resample"


@dataclass(frozen=True, slots=True)
class Forked:
    """A fork that was made.

    Args:
        path: its tape.
        site: where it was forked.
        environment: what the tools after the fork found; `why` says it in words.
        served: how many calls the tape answered before the site.
        live: the sites of the calls that went out, in order of arrival.
        unanswered: calls to pinned tools that the tape did not answer, in words.
        output, error: how the program ended.
        code: its exit code; None where it was no command.
        value: what the function returned, where it was one.
        interrupted: whether a signal ended it.
    """

    path: Path
    site: Site
    environment: Environment
    why: str
    served: int
    live: tuple[str, ...]
    unanswered: tuple[str, ...] = ()
    output: str = ""
    error: str | None = None
    code: int | None = None
    value: Any = None
    interrupted: bool = False


@dataclass(slots=True)
class Ended:
    """How a program ended."""

    output: str = ""
    error: str | None = None
    code: int | None = None
    value: Any = None
    interrupted: bool = False
    exchanges: list[Exchange] = field(default_factory=list)


class _Time:
    """Seconds of the run: they stand where the recorded run was, until it goes on by itself."""

    def __init__(self) -> None:
        self._stands_s = 0.0
        self._ahead_s: float | None = None

    def __call__(self) -> float:
        return self._stands_s if self._ahead_s is None else time.perf_counter() + self._ahead_s

    def recall(self, at_ms: float) -> None:
        """The recorded run was so far."""
        if self._ahead_s is None:
            self._stands_s = max(self._stands_s, at_ms / 1000)

    def go(self) -> None:
        """From now on, time passes."""
        self._ahead_s = self._stands_s - time.perf_counter()


class Forking:
    """One fork under way: tape, player, change, and what holds the clock."""

    def __init__(
        self,
        tape: str | Path,
        at: Site | str,
        to: str | Path,
        change: Change,
        *,
        tools: Tools,
        mode: Mode,
        restore: Callable[[Site], None] | None,
        seed: int,
    ) -> None:
        self.tape = Tape.open(tape)
        self.site = _site(at)
        self.to, self.change = Path(to), change
        self.fork = fork_of(self.tape, mode)
        self.redactor = self.tape.redactor()
        """What takes secrets out of the child: by the parent's key, so that equal ones are equal on both."""
        self.recorded = self.fork.at(self.site)
        if self.to.exists() and self.to.samefile(self.tape.path):
            raise Misuse(f"{to} is the tape that is forked; name another file with -o")
        self.time = _Time()
        self._restore, self._restored = restore, False
        self._ledger = Ledger()
        self._noted: Callable[[], Sequence[Exchange]] = list
        self._heard: Interceptor = _passing
        self._choices = Choices(seed, "fork", str(self.site))
        self._stage: Stage | None = None
        self._failed: Exception | None = None
        self._drawing: Drawing | None = None
        at_site, kept = self._changing()
        here = self.recorded.n + (kept or change.reply is not None)
        if why := kept_by_provider(self.fork.exchanges, lambda exchange: exchange.n < here):
            raise Misuse(f"{tape} cannot be forked at {self.site}: {why}, and what it holds cannot be told again")
        then = self._later if change.fault else None
        self.player = self.fork.player(self.site, at_site, then=then, kept=kept, tools=tools)
        folder_for(self.to)

    @property
    def stages(self) -> tuple[Interceptor, ...]:
        """Those that stand in the world's place, and before it."""
        return self.player.stage, Histories(lambda: self._noted()).stage

    @property
    def input(self) -> str | None:
        """What the recorded run was given, with the secrets that are known here."""
        return None if self.tape.input is None else self.real(self.tape.input)

    def real(self, text: str) -> str:
        """A recorded text, or conversation, with the secrets that are known here."""
        return Telling(self.redactor).real(text)

    @property
    def draws(self) -> Draws | None:
        """What the agent draws from: as in the recorded run."""
        return Draws.of(self.tape.header)

    @property
    def parent(self) -> dict[str, object]:
        """For the child's first line."""
        footer = self.tape.footer
        digest = footer.digest if footer else ""
        change: dict[str, object] = {"site": str(self.site), "change": str(self.change)}
        lanes = {"lanes": self.tape.header["lanes"]} if "lanes" in self.tape.header else {}
        return {"parent": {"tape": self.tape.path.name, "digest": digest, **change}, **lanes}

    def begins(self, inside: Inside, drawing: Drawing | None) -> None:
        """The run is about to make its first call."""
        self._ledger, self._heard, self._noted = inside.ledger, inside.heard, inside.noted
        self._drawing = drawing
        self.player.leave = self._leave
        self.player.recall = self._recall

    def ended(self, ended: Ended) -> Forked:
        """What came of it.

        Raises:
            TapeMismatch: the program did something else before it came to the site, or never came there.
            WorldFailed: the environment could not be restored.
        """
        if isinstance(self._failed, FlakestormError):
            raise self._failed
        if self._failed is not None:
            raise WorldFailed(f"the environment was not restored: {self._failed}") from self._failed
        player = self.player
        problems = [str(played) for played in player.played if played.match.outcome in ("diverged", "extra")]
        if not ended.interrupted and (problems or player.changed is None):
            never = [] if player.changed else [f"the program ended and did not come to {self.site}"]
            raise TapeMismatch([*problems, *player.missing(), *never])
        live = [exchange for exchange in ended.exchanges if exchange.sent]
        environment, why = self._contract(live, ended.exchanges)
        return Forked(
            self.to,
            self.site,
            environment,
            why,
            len(player.played),
            tuple(str(exchange.site) for exchange in live),
            tuple(str(each) for each in player.unanswered),
            ended.output,
            ended.error,
            ended.code,
            ended.value,
            ended.interrupted,
        )

    def _changing(self) -> tuple[Interceptor | None, bool]:
        """The stage that has the call of the site, and whether the recorded reply is further in."""
        change, kind = self.change, self.site.kind
        if change.reply is not None:
            from flakestorm.wire.whole import body_for

            recorded = self.recorded.reply
            return giving(body_for(self.recorded.wire, change.reply, stream=recorded.stream), recorded), False
        if change.model is not None:
            from flakestorm.wire.other_model import with_model

            if kind != "llm":
                raise Misuse(f"{self.site} is no model call, so no other model can answer it")
            name, asked = change.model, self.recorded
            with_model(Call(asked.method, asked.url, asked.headers, asked.body), name)
            return (lambda call: with_model(call, name)), False
        if change.fault is None:
            return None, False
        from flakestorm.faults.planned import parse_injection

        planned = parse_injection(f"{self.site.exact}={change.fault}")
        if planned.on_results:
            raise Misuse(
                f"the fault {change.fault!r} is for a result; a fork has the call itself, so leave @result out"
            )
        return self._faulted, not planned.on_conversations

    def _faulted(self, call: Call) -> Flow | Call:
        from flakestorm.faults.schedule import Schedule

        schedule = Schedule.injecting([f"{(call.site or self.site).exact}={self.change.fault}"])
        self._stage = schedule.stage(self._choices, self._ledger, noted=self._noted)
        return chain(self._stage, self._heard)(call)

    def _later(self, call: Call) -> Flow | Call:
        return call if self._stage is None else self._stage(call)

    def _recall(self, at_ms: float) -> None:
        self.time.recall(at_ms)
        if self._drawing is not None:
            self._drawing.recall(at_ms)

    def _leave(self) -> None:
        """The tape has no more to say: the environment is made what it was, and time passes again."""
        if self._failed is not None:
            raise CallFailed("refused", "the environment could not be restored")
        if self._restore is not None:
            try:
                with outside():
                    self._restore(self.site)
            except Exception as error:
                self._failed = error
                raise CallFailed("refused", f"the environment could not be restored: {error}") from error
            self._restored = True
        self.time.go()
        if self._drawing is not None:
            self._drawing.go_live(self._drawing.elapsed_ms)

    def _contract(self, live: Sequence[Exchange], exchanges: Sequence[Exchange]) -> tuple[Environment, str]:
        from flakestorm.tape.tools import tools_named
        from flakestorm.wire.mcp.protocol import housekeeping

        asked = [str(e.site) for e in live if e.kind in TOOLS and not (e.kind == "mcp" and housekeeping(e.name))]
        crossed = {exchange.name for exchange in exchanges if exchange.kind in TOOLS}
        unseen = [name for name in tools_named(exchanges) if name not in crossed]
        told = [f"called for real: {', '.join(asked)}"] if asked else []
        told += [f"ran inside the agent, unseen: {', '.join(unseen)}"] if unseen else []
        said = "; ".join(told) or "no tool was called for real"
        if self._restored:
            return "snapshot", f"it was restored at {self.site}; {said}"
        if not told:
            return "pure", said
        return "unrestored", f"{said}; the tape brings back the conversation, not a database or a disk"


def fork_of(tape: Tape, mode: Mode = "renamed", *, exchanges: Sequence[Exchange] | None = None) -> Fork:
    """The recorded run of a tape, to be forked any number of times.

    Args:
        tape, mode: the tape, and how requests are matched.
        exchanges: its exchanges, where they are known, and how they are to be taken.

    Raises:
        TapeDamaged: it was edited, cut short or added to.
    """
    if exchanges is None:
        tape.verify()
        exchanges = tape.exchanges()

    def telling() -> Telling:
        return Telling(None if tape.key is None else tape.redactor())

    threads = tape.header.get("lanes") != CONNECTIONS
    return Fork(exchanges, mode=mode, spans=spans_of(tape.header, exchanges), threads=threads, telling=telling)


def _site(text: Site | str) -> Site:
    try:
        return text if isinstance(text, Site) else Site.parse(text)
    except ValueError as error:
        raise Misuse(str(error)) from error


def _passing(call: Call) -> Call:
    return call
