"""How quickly runs are started: no faster than was asked for, and no faster than the agent's world can bear.

Two things hold a start back, and neither touches a run that is under way:

- **A rate** (`advanced.rate_limit`), kept by the virtual scheduling form of the generic cell rate algorithm (ITU-T
  I.371, annex A) without a burst: a start is due when what was used before has been paid for. What a run will use is
  not known when it starts, so it is charged what runs used on average, each call beyond that as it goes out, and what
  it did not use is given back when it ends.
- **A refusal**: a 429, or a 503 that names a time to wait, which came from the world and from no fault. Nothing is
  started before the time it names has passed, and fewer runs are under way afterwards: half as many, then one more for
  each time that all of them got through (additive increase, multiplicative decrease: Chiu and Jain, *Analysis of the
  Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks*, 1989). Runs that had begun before
  the last decrease were begun too quickly for the same reason, and cause no other one (Jacobson, *Congestion Avoidance
  and Control*, 1988). A refusal that names no time is given one that doubles from refusal to refusal.

It decides when and never which: what a run does depends on its trial and the seed alone. Time is asked of a clock that
is given, and whoever starts runs does the waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from math import inf

from flakestorm.config.model import RateLimit
from flakestorm.core.answer import AgentError
from flakestorm.core.call import Headers
from flakestorm.core.record import Record
from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange

__all__ = ["IN_VAIN", "Met", "Paced", "Pacing", "Refusal", "limited", "paced_by", "starved", "together"]

FIRST_WAIT_MS = 1000.0
"""How long is waited after a first refusal that names no time."""

IN_VAIN = 3
"""After so many waits in a row that let no run get through, refusals are waited for no more until one does: a quota
that is used up, or a service that refuses everybody, does not come back in a minute."""


class Refusal(Record, frozen=True):
    """A call that the world refused for its rate, and no fault did.

    Args:
        site: the call.
        status: of the reply.
        wait_ms: how long it asks to wait; None where it does not say.
    """

    site: str
    status: int
    wait_ms: float | None = None


class Paced(Record, frozen=True):
    """What holding back has come to, in one command.

    Args:
        refusals: how many calls the world refused; runs: in how many runs.
        holds: how often a start had to wait for what a refusal asks; held_ms: how long, all in all.
        least: how few runs were let be under way at once after refusals; None where that never changed.
        spaced_ms: how long starts waited for `advanced.rate_limit`, all in all.
        doubt: what keeps that limit from being kept exactly, in words; empty where nothing does.
    """

    refusals: int = 0
    runs: int = 0
    holds: int = 0
    held_ms: float = 0.0
    least: int | None = None
    spaced_ms: float = 0.0
    doubt: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The same in words, for the notes of a report."""
        said = []
        if self.refusals:
            what = f"the world refused {_counted(self.refusals, 'call')} in {_counted(self.runs, 'run')} for the rate"
            held = f"; starts waited {_counted(self.holds, 'time')} for that, {self.held_ms / 1000:.1f} s in all"
            least = f"; for a time, no more than {self.least} at once were let begin"
            said.append(f"{what} (no fault did){held * bool(self.holds)}{least * (self.least is not None)}")
        if self.spaced_ms:
            said.append(f"starts waited {self.spaced_ms / 1000:.1f} s in all for advanced.rate_limit")
        return (*said, self.doubt) if self.doubt else tuple(said)

    @property
    def known(self) -> Paced | None:
        """The same, for the report; None where nothing was held back or refused."""
        return None if self == Paced() else self


class _Rate:
    """One rate: so many of something a minute.

    Args:
        per_minute: the most.
        guess: what a run is taken to use before one has ended; None lets them go one by one until then.
    """

    def __init__(self, per_minute: int, guess: float | None) -> None:
        self._each_s = 60 / per_minute
        self._guess, self._used, self._ended = guess, 0.0, 0
        self._due_s = -inf
        self._charged: dict[str, float] = {}

    @property
    def _expected(self) -> float | None:
        return self._used / self._ended if self._ended else self._guess

    def wait_s(self, now_s: float, under_way: int) -> float:
        if self._expected is None and under_way:
            return inf
        return max(0.0, self._due_s - now_s)

    def started(self, run: str, now_s: float) -> None:
        self._charged[run] = expected = self._expected or 0.0
        self._due_s = max(self._due_s, now_s) + expected * self._each_s

    def uses(self, run: str, so_far: float) -> None:
        """It has used so much by now: what goes beyond what it was charged is charged at once."""
        charged = self._charged.get(run)
        if charged is not None and so_far > charged:
            self._due_s += (so_far - charged) * self._each_s
            self._charged[run] = so_far

    def ended(self, run: str, used: float) -> None:
        self.uses(run, used)
        charged = self._charged.pop(run, None)
        if charged is not None:
            self._due_s -= (charged - used) * self._each_s
            self._used, self._ended = self._used + used, self._ended + 1


class Pacing:
    """Decides when the next run may be started; shared by all runs of a command, whichever instance makes them.

    Calls of runs come in from several threads.

    Args:
        monotonic: a clock, in seconds.
        limit: the rates to keep, and how long a refusal may hold back starts.
    """

    def __init__(self, monotonic: Callable[[], float], limit: RateLimit | None = None) -> None:
        limit = limit or RateLimit()
        self._monotonic, self._lock = monotonic, threading.Lock()
        self._calls = _Rate(limit.calls_per_minute, 1.0) if limit.calls_per_minute else None
        self._tokens = _Rate(limit.tokens_per_minute, None) if limit.tokens_per_minute else None
        self._longest_ms = float(limit.max_hold_ms)
        self._most = inf
        self._sent: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._count = self._cut_at = 0
        self._room: float | None = None  # how many runs may be under way; None is no limit
        self._until_s = -inf
        self._refused: set[str] = set()  # of the runs under way
        self._unnamed = self._in_vain = 0
        self._why, self._since_s = "", 0.0
        self.fresh()

    def fresh(self) -> None:
        """Count from here on; what holds starts back stays."""
        self._refusals = self._runs = self._holds = self._untold = 0
        self._held_s = self._spaced_s = 0.0
        self._least: int | None = None
        self._first = self._news = ""

    @property
    def quiet(self) -> bool:
        """Whether nothing has ever held a start back, and no rate is to be kept: nobody counts the runs under way."""
        return self._calls is None and self._tokens is None and self._until_s == -inf

    @property
    def paced(self) -> Paced:
        """What has been counted."""
        with self._lock:
            doubt = f"the tokens of {self._untold} runs are not known, so advanced.rate_limit does not count them"
            return Paced(
                self._refusals, self._runs, self._holds, round(self._held_s * 1000, 1), self._least,
                round(self._spaced_s * 1000, 1), doubt if self._untold else "",
            )  # fmt: skip

    def wait_s(self, under_way: int, most: int) -> float:
        """How long to wait before another run is started.

        Args:
            under_way: how many runs are.
            most: how many may be.

        Returns:
            Seconds, after which this is to be asked again; 0 where one may be started now, infinity where first another
            one must end, which is never said while none is under way.
        """
        with self._lock:
            now_s, self._most = self._monotonic(), most
            self._waited(now_s)
            if self._room is not None and self._room >= most:
                self._room = None
            if self._room is not None and under_way and under_way >= int(self._room):
                return inf
            rates = [rate.wait_s(now_s, under_way) for rate in (self._calls, self._tokens) if rate is not None]
            held_s, spaced_s = max(0.0, self._until_s - now_s), max(rates, default=0.0)
            wait_s = max(held_s, spaced_s)
            if wait_s:
                self._why, self._since_s = "held" if held_s >= spaced_s else "spaced", now_s
            if held_s and self._first:
                self._news = f"{self._first}: no run is started for {held_s:.1f} s, and fewer at once from then on"
                self._first = ""
            return wait_s

    def news(self) -> str:
        """That starts are held back because of a refusal, in words, the first time that they are; else empty."""
        with self._lock:
            said, self._news = self._news, ""
            return said

    def _waited(self, now_s: float) -> None:
        """Since this was asked last, a start has waited."""
        why, self._why = self._why, ""
        if why == "spaced":
            self._spaced_s += now_s - self._since_s
        elif why:
            self._held_s += now_s - self._since_s
            if now_s >= self._until_s:
                self._holds += 1
                self._in_vain += 1

    def started(self, run: str) -> None:
        """This run is started now."""
        with self._lock:
            self._count += 1
            self._numbers[run], self._sent[run] = self._count, 0
            now_s = self._monotonic()
            for rate in (self._calls, self._tokens):
                if rate is not None:
                    rate.started(run, now_s)

    def sent(self, run: str, calls: int = 1) -> None:
        """So many more of its model calls have gone out."""
        with self._lock:
            if run not in self._sent:  # made by a worker, whose runs are started by somebody else
                return
            self._sent[run] += calls
            if self._calls is not None:
                self._calls.uses(run, self._sent[run])

    def refused(self, run: str, refusal: Refusal) -> None:
        """One of its calls was refused for the rate, now."""
        with self._lock:
            self._refusals += 1
            if self._refusals == 1:
                self._first = limited([refusal])
            self._runs += run not in self._refused
            self._refused.add(run)
            if self._numbers.get(run, self._count) > self._cut_at:
                self._cut_at = self._count
                self._room = max(1.0, len(self._numbers) / 2)
                if self._room < self._most:
                    self._least = min(self._least or int(self._room), int(self._room))
            wait_ms = refusal.wait_ms
            if wait_ms is None:
                wait_ms = min(FIRST_WAIT_MS * 2**self._unnamed, self._longest_ms)
                self._unnamed = min(self._unnamed + 1, 30)
            self._hold(wait_ms)

    def named(self, wait_ms: float) -> None:
        """A refusal that was taken to name no time does, now that all of it has come."""
        with self._lock:
            self._unnamed = max(0, self._unnamed - 1)
            self._hold(wait_ms)

    def _hold(self, wait_ms: float) -> None:
        if self._in_vain < IN_VAIN:
            self._until_s = max(self._until_s, self._monotonic() + min(wait_ms, self._longest_ms) / 1000)

    def ended(self, run: str, *, tokens: int | None, through: bool) -> None:
        """This run has ended.

        Args:
            run: which.
            tokens: what its model calls used; None where that is not known.
            through: whether it got from the world what it asked for.
        """
        with self._lock:
            refused = run in self._refused
            self._refused.discard(run)
            self._numbers.pop(run, None)
            if self._calls is not None:  # one whose calls nobody sees makes at least one
                self._calls.ended(run, max(1, self._sent.pop(run, 0)))
            if self._tokens is not None:
                self._untold += tokens is None
                self._tokens.ended(run, tokens or 0)
            self._sent.pop(run, None)
            if through:
                self._unnamed = self._in_vain = 0
            if not refused and self._room is not None:
                self._room += 1 / self._room


class Met:
    """What one run meets of this; told by the recorder of its tape.

    Args:
        run: its id.
        pacing: is told in turn, where runs are paced.
    """

    def __init__(self, run: str, pacing: Pacing | None) -> None:
        self._run, self._pacing = run, pacing
        self.refusals: list[Refusal] = []

    def sent(self, site: Site) -> None:
        """This call goes out."""
        if self._pacing is not None and site.kind == "llm":
            self._pacing.sent(self._run)

    def refused(self, site: Site, status: int, headers: Headers) -> None:
        """The world refused this call for its rate, by a reply that begins so."""
        from flakestorm.wire.limits import asked_wait_ms  # few runs are refused anything

        refusal = Refusal(str(site), status, asked_wait_ms(headers))
        self.refusals.append(refusal)
        if self._pacing is not None:
            self._pacing.refused(self._run, refusal)

    def explained(self, site: Site, status: int, headers: Headers, body: bytes) -> None:
        """The body of a reply that may refuse has come, and may name the time that its head did not."""
        from flakestorm.wire.limits import asked_wait_ms, may_refuse, told_wait_ms

        if not may_refuse(status) or asked_wait_ms(headers) is not None:
            return
        if (wait_ms := told_wait_ms(headers, body)) is None:
            return
        before, refusal = Refusal(str(site), status), Refusal(str(site), status, wait_ms)
        if before in self.refusals:
            self.refusals[self.refusals.index(before)] = refusal
            if self._pacing is not None:
                self._pacing.named(wait_ms)
        else:
            self.refusals.append(refusal)
            if self._pacing is not None:
                self._pacing.refused(self._run, refusal)


def paced_by(pacing: Pacing | None) -> Paced:
    """What holding back has come to, also where nobody held anything back."""
    return Paced() if pacing is None else pacing.paced


def together(parts: Iterable[Paced | None]) -> Paced | None:
    """What it has come to in all parts of a command; None where it has come to nothing."""
    known = [part for part in parts if part is not None]
    return Paced(
        sum(part.refusals for part in known),
        sum(part.runs for part in known),
        sum(part.holds for part in known),
        round(sum(part.held_ms for part in known), 1),
        min((part.least for part in known if part.least is not None), default=None),
        round(sum(part.spaced_ms for part in known), 1),
        "; ".join(part.doubt for part in known if part.doubt),
    ).known


def limited(refusals: Sequence[Refusal]) -> str:
    """Which calls the world refused, in words; empty where it refused none."""
    if not refusals:
        return ""
    more = f" and {_counted(len(refusals) - 1, 'more call')}" if len(refusals) > 1 else ""
    return f"the world, and no fault, refused {refusals[0].site}{more} for the rate ({refusals[0].status})"


def starved(refusals: Iterable[Refusal], exchanges: Iterable[Exchange], error: AgentError | None) -> bool:
    """Whether a run never got what it asked for: to the end, something was refused for the rate, or the agent's time
    was over before. It shows what the agent does in a world that nobody planned for it.

    Args:
        refusals: what the run met.
        exchanges: its tape.
        error: why it has no answer.
    """
    last = {site[:2]: site.occurrence for site in (Site.parse(each.site) for each in refusals)}
    if error is not None and error.kind == "timeout":
        return bool(last)
    for x in exchanges:
        if x.site.occurrence > last.get(x.site[:2], x.site.occurrence) and 0 < (x.world or x.reply).status < 400:
            del last[x.site[:2]]
    return bool(last)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
