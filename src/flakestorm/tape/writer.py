"""The recorder: two stages that watch a run's calls and put them on its tape.

`outer` stands right inside classify and sees what the agent sees; `inner` stands last before the world and sees what
the world says. Where a fault between the two made a difference, an exchange keeps both. Neither reads a body: chunks
are noted as they pass, by reference, so recording changes no timing.

The file grows by one line per exchange, written in one piece when the exchange ends: a crash loses at most the
exchanges in flight.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, cast

from flakestorm.core.call import Call, Headers, Reply, Tap, streamed
from flakestorm.core.conversation import Turn
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Flow, Passing, Watching
from flakestorm.core.site import Site
from flakestorm.errors import StageError
from flakestorm.tape.cleaning import Cleaner, cleaned, redacted
from flakestorm.tape.lines import FILE, Lines
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.noting import Heads, broke, differ, ended, heads, keep_upload, so_far, unheard
from flakestorm.tape.redact import Redactor, key_of
from flakestorm.tape.room import CUT, Room
from flakestorm.tape.said import Said
from flakestorm.tape.sealed import SealedFile, cleaned_header, without_late_secrets
from flakestorm.tape.texts import to_json
from flakestorm.version import __version__

__all__ = ["Meeting", "Recorder"]

_MANY = 64  # exchanges that wait to be added to the digest
_TUNNEL = "what passed inside this tunnel was not seen"


class Meeting(Protocol):
    """Wants to know how a run gets on with its world."""

    def sent(self, site: Site) -> None:
        """This call goes out."""

    def refused(self, site: Site, status: int, headers: Headers) -> None:
        """The world, and nothing in its place, refuses this call for its rate, by a reply that begins so."""

    def explained(self, site: Site, status: int, headers: Headers, body: bytes) -> None:
        """The body of such a reply has come, or of another error of the world."""


class Recorder:
    """Records one run. `count` is how many exchanges have begun.

    Args:
        path: the file to write (replaced if there is one; its folder exists), or None to keep the run in memory only.
        clock: seconds on a clock that never goes back; the run begins now.
        ledger: the run's faults; what fired while an exchange was open at its site is noted on it.
        header: facts of the run for the first line, e.g. `run` and `input`. Format and version are added.
        reached: is told, before the agent is, at which millisecond of the run a reply began or failed to come.
        met: is told of calls that go out, and of those that the world refuses for their rate.
        keep: whether `exchanges` keeps what has ended; without, recording may go on for days in the same memory.
        redactor: takes secrets out of what goes to the file; by default one that knows those of this process's
            environment. The exchanges in memory hold the real bodies, for invariants to judge.

    Raises:
        TapeError: the file cannot be created.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Callable[[], float],
        ledger: Ledger,
        header: Mapping[str, Any],
        keep: bool = True,
        reached: Callable[[float], None] | None = None,
        redactor: Redactor | None = None,
        met: Meeting | None = None,
    ) -> None:
        self._reached, self._met = reached, met
        self._clock, self._ledger, self._began = clock, ledger, clock()
        self._lock = threading.RLock()  # exchanges of one run begin and end in several threads
        self._all: list[Exchange] = []
        self._keep, self._said, self._lines = keep, Said(), Lines()
        self._unsaid: list[tuple[Exchange, bytes]] = []  # not in the total yet: that is quicker for many at once
        self.count = 0
        self._open: dict[Site, _Open] = {}
        self._ending: list[_Open] = []
        self._digest: str | None = None
        self.redactor = redactor or Redactor(key_of(sorted(header.items(), key=str)))
        self._cleaner = Cleaner(self.redactor)
        self._asked_heads, self._said_heads = Heads(self.redactor), Heads(self.redactor)
        self._header = {"format": f"flakestorm-tape/{FILE}", "version": __version__, "key": self.redactor.key, **header}
        if self.redactor.patterns:
            self._header["redact"] = list(self.redactor.patterns.entries)
        self._head = head = cleaned_header(self._header, self.redactor)
        self._file = None if path is None else SealedFile(path)
        self._written = 0
        self._known = self.redactor.version
        self._late = False  # whether a secret was learned after lines were written that may hold it
        if self._file is not None:
            self._file.append(head)

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges so far, in order of arrival; those still under way hold what has passed until now."""
        with self._lock:
            return list(self._all)

    @property
    def digest(self) -> str | None:
        """What was asked and said, as one hash (`said.digest`); None until `close`."""
        return self._digest

    def outer(self, call: Call, n: int = -1) -> _Open:
        """The stage that sees what the agent sees.

        Args:
            n: the exchange's number, if it has one from `begin`.
        """
        site = call.site
        if site is None:
            raise StageError(f"the call to {call.url} has no site; the recorder stands inside the classify stage")
        redactor = self.redactor
        known = redactor.version
        exchange = Exchange(
            site,
            call.lane,
            call.wire,
            call.method,
            redactor.url(call.url),
            self._asked_heads.headers(call.headers),
            call.body,
            Recorded(0, (), "", [], [], False, "client left"),
        )
        if call.method == "CONNECT":
            exchange.note = _TUNNEL
        at = _Open(call, exchange, self, len(self._ledger.fired), known)
        with self._lock:
            exchange.t_ms = int((self._clock() - self._began) * 1e6 + 0.5) / 1000
            exchange.n = self.begin() if n < 0 else n
            if self._keep:
                self._all.append(exchange)
            self._open[site] = at
        return at

    def heard(self, call: Call) -> Flow | Call:
        """The stage that stands right inside the faults where another one, further in, may answer in the world's place:
        what that one says is what the world said, though nothing was sent."""
        at = self._open.get(cast(Site, call.site))
        if at is None or at.exchange.site not in self._ledger.hit:
            return call
        at.heard, at.world = True, unheard()
        return _World(call, at, at.world)

    def inner(self, call: Call) -> Flow | Call:
        """The stage that sees what the world says."""
        at = self._open.get(call.site)  # type: ignore[arg-type]  # one without a site is not there
        if at is None:  # the run is over, or this call never passed `outer`
            return call
        exchange = at.exchange
        exchange.sent += 1
        if self._met is not None:
            self._met.sent(exchange.site)
        changed = call.body is not at.call.body and call.body != at.call.body
        exchange.world_body = call.body if changed else None  # of several requests, the last one's
        hit = self._ledger.hit
        if not hit or at.heard or exchange.site not in hit:  # nothing stands between, or it is noted further out
            return call
        at.world = unheard()
        return _World(call, at, at.world)

    def begin(self) -> int:
        """An exchange begins; gives its number."""
        with self._lock:
            self.count += 1
            return self.count - 1

    def vouched(self, lane: str, n: int, said: bytes) -> None:
        """An exchange of which nothing is kept has ended, and it is known what it adds to the digest.

        Args:
            n: from `begin`.
            said: as `Said.add` gives it.
        """
        with self._lock:
            if self._digest is None:
                self._said.note(lane, n, said)

    def close(
        self, *, output: str = "", error: str | None = None, stdin: bytes | None = None, turns: Sequence[Turn] = ()
    ) -> None:
        """The run is over: exchanges still open are ended as `client left`, and the footer is written.

        Args:
            output: the agent's output.
            error: why there is none, or None.
            stdin: of a recorded command, what it was given to read.
            turns: of a conversation, its turns.

        Raises:
            TapeError: the file could not be written to its end; what is in it stays readable.
        """
        with self._lock:
            if self._digest is not None:
                return
            for at in list(self._open.values()):
                at.exchange.reply = so_far(at.exchange.reply)
                at.world = at.world and so_far(at.world)
                self.ended(at)
            self._say()
            output, error = cleaned(output, self.redactor), self.redactor.maybe(error)
            late = self._late or self.redactor.version != self._known
            if self._file is not None and (late or self._head != cleaned_header(self._header, self.redactor)):
                self._file, self._said = without_late_secrets(self._file, self._header, self.redactor, self._said)
            self._digest = self._said.total(output)
            if self._file is not None:
                more: dict[str, Any] = {} if stdin is None else {"stdin": to_json(self.redactor.body(stdin))}
                more |= {"turns": [asdict(redacted(turn, self.redactor)) for turn in turns]} if turns else {}
                self._file.append({"output": output, "error": error, "digest": self._digest, **more}, mark=self._mark())
                self._file.close()

    def _mark(self) -> Callable[[bytes], str] | None:
        """The seal of who records, for a tape that names something to run (`command` in its header)."""
        if "command" not in self._header:
            return None
        from flakestorm.tape.origin import own_key  # most runs are recorded from a plan, and name nothing

        key = own_key().key
        return None if key is None else key.mark

    def told(self, exchange: Exchange, status: int, headers: Headers) -> None:
        """A reply begins so, before any fault has touched it; where the call never went out, it is not the world's."""
        if self._met is None or not exchange.sent:
            return
        from flakestorm.wire.limits import refuses  # most replies are no errors

        if refuses(status, headers):
            self._met.refused(exchange.site, status, headers)

    def explained(self, exchange: Exchange, status: int, headers: Headers, chunks: Sequence[bytes]) -> None:
        """The body of such a reply has come."""
        if self._met is not None and exchange.sent:
            self._met.explained(exchange.site, status, headers, b"".join(chunks))

    def ended(self, at: _Open) -> None:
        """The exchange is over: it goes to the file.

        While one is on its way there, another may end in the same thread, where the garbage collector finds a stream
        that nobody read to its end. It waits, for lines refer to those before.
        """
        with self._lock:
            self._ending.append(at)
            if len(self._ending) == 1:
                try:
                    for each in self._ending:  # which may grow
                        self._end(each)
                finally:
                    self._ending.clear()

    def _end(self, at: _Open) -> None:
        exchange, world = at.exchange, at.world
        if self._open.pop(exchange.site, None) is None:
            return  # the run was over before this exchange was
        now_ms = int((self._clock() - self._began) * 1e6 + 0.5) / 1000  # round() takes four times as long
        exchange.duration_ms = int((now_ms - exchange.t_ms) * 1000 + 0.5) / 1000
        if not exchange.reply.status:
            self.reached(exchange.t_ms + exchange.duration_ms)
        if len(self._ledger.fired) > at.fired_before:
            fired = self._ledger.fired[at.fired_before :]
            exchange.faults = tuple(firing for firing in fired if exchange.site in (firing.site, firing.via))
        if exchange.faults and world is not None:
            if at.said is not None:
                heads(world, at.said, self.redactor)
            exchange.world = world if differ(world, exchange.reply) else None
        if at.call.upload is not None:
            keep_upload(exchange, at.call.upload)
        clean = self._cleaner.exchange(exchange, known=at.known, repeats=at.call.repeats)
        self._late = self._late or (self.redactor.version != self._known and self._written > 0)
        self._known = self.redactor.version
        self._written += 1
        text, request = None, b""
        if self._file is not None:
            line, text, request = self._lines.line(clean, self._cleaner.ends)
            self._file.append(line)
        elif self._keep:
            text, request = self._lines.kept(clean, self._cleaner.ends)
        self._unsaid.append((clean, request))
        if not self._keep or len(self._unsaid) >= _MANY:
            self._say()
        if text is not None and clean.body is exchange.body:
            exchange.body = cast(bytes, text)  # most of it is in the request before

    def _say(self) -> None:
        """Add to the digest what waits for it; only the footer holds it, so there is no hurry."""
        unsaid, self._unsaid = self._unsaid, []
        for clean, request in unsaid:
            self._said.add(clean, request)

    def reached(self, at_ms: float) -> None:
        """A reply began then, or failed to come."""
        if self._reached is not None:
            self._reached(at_ms)

    def now_ms(self) -> float:
        """Milliseconds since the run began."""
        return int((self._clock() - self._began) * 1e6 + 0.5) / 1000  # round() takes four times as long


class _Open(Watching, Tap):
    """An exchange under way: the call as it passes, then its reply, noted as it passes, until both have ended."""

    __slots__ = ("_into", "_recorder", "_room", "exchange", "fired_before", "heard", "known", "said", "world")

    def __init__(self, call: Call, exchange: Exchange, recorder: Recorder, fired_before: int, known: int) -> None:
        self.call, self.exchange, self._recorder, self.fired_before = call, exchange, recorder, fired_before
        self.known = known  # how many secrets were known before anything of it was cleaned
        self._into = exchange.reply  # what passes after the run's end is noted here, and the exchange has a copy
        self._room = Room()
        self.heard = False  # whether `Recorder.heard` notes what the world says
        self.world: Recorded | None = None
        self.said: Reply | None = None  # the world's reply, whose head is noted only if it turns out to be needed

    def watched(self, status: int, headers: Headers, reason: str) -> Tap:
        into = self._into
        if status >= 429 and self.exchange.site not in self._recorder._ledger.hit:  # else `_World` sees it
            self._recorder.told(self.exchange, status, headers)
        into.status, into.reason, into.stream = status, reason, streamed(headers)
        into.headers = self._recorder._said_heads.headers(headers)
        return self

    def failed(self, error: BaseException) -> None:
        broke(self._into, error)
        self._recorder.ended(self)

    def chunk(self, data: bytes) -> None:
        if self._room.cut:
            return
        into, recorder = self._into, self._recorder
        at_ms = int((recorder._clock() - recorder._began) * 1e6 + 0.5) / 1000
        into.chunks.append(self._kept(data))
        into.at_ms.append(at_ms)
        if recorder._reached is not None and len(into.at_ms) == 1:
            recorder._reached(at_ms)

    def _kept(self, data: bytes) -> bytes:
        data = self._room.take(data)
        if self._room.cut:
            self.exchange.note = "; ".join(filter(None, (self.exchange.note, CUT)))
        return data

    def end(self, error: BaseException | None) -> None:
        if error is None:
            self._into.end = "eof"
        else:
            ended(self._into, error)
        into, exchange = self._into, self.exchange
        if into.status >= 429 and exchange.site not in self._recorder._ledger.hit:  # else `_World` says it
            self._recorder.explained(exchange, into.status, into.headers, into.chunks)
        self._recorder.ended(self)

    def now_ms(self) -> float:
        """Milliseconds since the run began."""
        return self._recorder.now_ms()


class _World(Passing, Tap):
    """What the world says, where the agent may come to see something else."""

    __slots__ = ("_at", "_into", "_room")

    def __init__(self, call: Call, at: _Open, into: Recorded) -> None:
        self.call, self._at, self._into, self._room = call, at, into, Room()

    def answered(self, reply: Reply) -> Reply:
        self._at.said = reply
        if reply.status >= 429:
            self._at._recorder.told(self._at.exchange, reply.status, reply.headers)
        return reply.pipe(self)

    def failed(self, error: BaseException) -> None:
        broke(self._into, error)

    def chunk(self, data: bytes) -> None:
        if not self._room.cut:
            self._into.chunks.append(self._room.take(data))
            self._into.at_ms.append(self._at.now_ms())

    def end(self, error: BaseException | None) -> None:
        ended(self._into, error)
        at, said = self._at, self._at.said
        if said is not None and said.status >= 429:
            at._recorder.explained(at.exchange, said.status, said.headers, self._into.chunks)
