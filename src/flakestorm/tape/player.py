"""The player: a stage that answers from a tape in the world's place.

It stands between the faults and the world, so any fault can hit a replayed run. A request that the tape does not answer
gets an error that says so and what came nearest, and stays in `problems` whatever the agent makes of that error. The
world is asked only where `allow_live` or a fork says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial

import orjson

from flakestorm.core.call import Call, Reply, Tap
from flakestorm.core.pipeline import Answered, Flow, Interceptor, chain
from flakestorm.core.record import Record
from flakestorm.core.site import Kind, Site
from flakestorm.errors import CallFailed, Misuse
from flakestorm.tape.difference import differences
from flakestorm.tape.match import Entry, Match, Matcher
from flakestorm.tape.servers import Servers, speak_mcp
from flakestorm.tape.serving import failure, served
from flakestorm.tape.telling import Telling

__all__ = ["MISMATCH", "Played", "Player", "Playing"]

MISMATCH = "tape_mismatch"
"""The type of the error that an agent gets where the tape has no answer. Its status, 400, is one no SDK retries."""

_PROBLEMS = ("reordered", "diverged", "extra")


class Played(Record, frozen=True):
    """One request of a replay.

    Args:
        site: its address in the replay.
        match: what became of it.
    """

    site: Site
    match: Match

    @property
    def problem(self) -> bool:
        """Whether the replay differs from the recording here."""
        return self.match.outcome in _PROBLEMS

    def __str__(self) -> str:
        outcome, entry, details, _, _ = self.match
        told = f": {'; '.join(details)}" if details else ""
        if outcome == "diverged" and entry is not None:
            return f"{self.site} diverged from the tape; the nearest entry is {entry.site}{told}"
        if outcome == "extra":
            return f"{self.site} is an extra request{told}"
        if outcome == "reordered" and entry is not None:
            return f"{self.site} was reordered: the tape has it as {entry.site}, before a request that came earlier now"
        return f"{self.site} {outcome}{told}"


class Player:
    """Plays a tape to the calls of one run. `played` holds every request, in order of arrival.

    Args:
        matcher: knows the tape.
        allow_live: whether a request that the tape does not answer goes on to the world; it is a problem all the same.
        until: the recorded exchange from which on nothing is played: its request, and all later ones that no earlier
            exchange answers, are for `then`.
        then: the stage that has those; the world where None.
        at: the stage that has the request of `until` itself; `then` where None.
        kept: whether the tape answers the request of `until` too, further in than `at`.
        pinned: kinds of calls that the tape answers also from there on, by what they ask, as often as they ask it; one
            that it cannot answer is refused.
        strays: whether, by now, something else has made this run another one, e.g. a fault that fired; a request that
            the tape does not answer is no problem then, but goes on to the world where `allow_live`.
        telling: says a call as the tape would; by default as one without a key does.
    """

    def __init__(
        self,
        matcher: Matcher,
        *,
        allow_live: bool = False,
        until: Site | None = None,
        then: Interceptor | None = None,
        telling: Telling | None = None,
        at: Interceptor | None = None,
        kept: bool = False,
        pinned: Collection[Kind] = (),
        strays: Callable[[], bool] | None = None,
    ) -> None:
        self._matcher, self._live, self._then = matcher, allow_live, then
        self._telling = telling or Telling()
        self._at, self._kept, self._pinned, self._strays = at, kept, pinned, strays
        self._lock = threading.Lock()  # an agent's threads share it
        leaves = until is not None or allow_live
        servers = speak_mcp(matcher.entries)
        self._servers = Servers(matcher.entries, self._telling, leaves=leaves) if servers else None
        self.recall: Callable[[float], None] = _nothing
        """Is told when, in the recorded run, each reply began or failed to come, in milliseconds."""
        self.leave: Callable[[], None] = _done
        """Is told, once, that the first call comes which is not played."""
        self.played: list[Played] = []
        self.unanswered: list[Played] = []
        """The pinned calls, and those after a stray, that the tape did not answer and the world was not asked for."""
        self.forked: Site | None = None
        """The site of the first call that was not for the tape any more, once there was one."""
        self.changed: Site | None = None
        """The site of the call that was for `at`, once there was one."""
        self._end = None if until is None else _number(matcher.entries, until)

    @property
    def problems(self) -> list[str]:
        """What differs from the recording, in words; what was not asked for is not known before the run is over."""
        return [str(played) for played in self.played if played.problem]

    def missing(self) -> list[str]:
        """The recorded requests that were not made; of a fork, those before it."""
        end = self._end
        missing = [entry for entry in self._matcher.missing() if end is None or entry.n < end]
        return [f"{entry.site} was not asked for again" for entry in missing]

    def stage(self, call: Call) -> Flow | Call:
        """Answers from the tape; see the class."""
        if self._servers is None or call.kind != "mcp":
            return self._staged(call)
        return self._servers.before_world(self._staged)(call)

    def _staged(self, call: Call) -> Flow | Call:
        with self._lock:
            if call.upload is not None:
                match = Match("diverged", None, ("its body is streamed by the agent, so it is not known here",))
            else:
                match = self._match(call)
            played = Played(call.site or Site("http", "unknown", 1), match)
            if self._is_beyond(match):
                return self._beyond(call, played)
            unknown = match.outcome in ("diverged", "extra")
            if unknown and self._strays is not None:
                return self._astray(call, played)
            self.played.append(played)
            if unknown:
                return call if self._live else _answer(_refusal(call, f"flakestorm replay: {played}"))
            return self._served(call, match)

    def _served(self, call: Call, match: Match) -> Flow:
        servers, entry = self._servers, match.entry
        if servers is not None and entry is not None:
            asks = self._listening(entry, len(self.played) - 1) if entry.spoken else None
            if (flow := servers.played(call, entry.n, partial(self._in_turn, call, match), asks=asks)) is not None:
                return flow
        return _answer(self._replied(call, match))

    def _in_turn(self, call: Call, match: Match) -> Reply | CallFailed:
        with self._lock:
            return self._replied(call, match)

    def _replied(self, call: Call, match: Match) -> Reply | CallFailed:
        reply = self._reply(match)
        if self._servers is not None and call.kind == "mcp":
            self._servers.answered(call, reply)
        return reply

    def _listening(self, entry: Entry, at: int) -> Callable[[Reply], None]:
        """For what the agent answers to a server; `played[at]` is to say if it does so otherwise than recorded."""

        def told(reply: Reply) -> None:
            if isinstance(reply.body, bytes):
                recorded = _plainly(entry.reply.body.decode("utf-8", "replace"))
                answer = _plainly(self._telling.text(reply.body.decode("utf-8", "replace")))
                with self._lock:
                    if not self._matcher.same(recorded, answer):
                        details = tuple(
                            f"the agent answered otherwise: {line}" for line in differences(recorded, answer)
                        )
                        self.played[at] = Played(self.played[at].site, Match("diverged", entry, details))

        return told

    def _match(self, call: Call) -> Match:
        telling, matcher = self._telling, self._matcher
        version = telling.version
        seen = matcher.seen(call, version)
        if seen is not None and telling.plain(call, seen):
            found = matcher.match_seen(call, seen, version)
            if found is not None:
                return found
        request = telling.told(call)
        match = matcher.match(request, call.lane, call, telling.version)
        if match.outcome != "diverged" or match.entry is None:
            return match
        learned = telling.recognised(matcher.hidden(match.entry, request))
        return matcher.match(telling.told(call), call.lane, call, telling.version) if learned else match

    def _beyond(self, call: Call, played: Played) -> Flow | Call:
        """A call from the fork on."""
        match = played.match
        here = match.entry is not None and match.entry.n == self._end and match.outcome not in ("diverged", "extra")
        kept = self._reply(match) if here and self._kept else None
        self._left(played.site)
        if here:
            self.changed = played.site
            if kept is not None:
                return chain(*(() if self._at is None else (self._at,)), lambda _: _answer(kept))(call)
            if self._at is not None:
                return self._at(call)
        elif call.kind in self._pinned:
            if match.entry is not None and match.outcome != "diverged":
                return _answer(self._reply(match, again=True))
            return self._refused(call, played)
        return call if self._then is None else self._then(call)

    def _astray(self, call: Call, played: Played) -> Flow | Call:
        """A call that the tape does not answer, of a run that may have become another one."""
        if self._strays is None or not self._strays():
            self.played.append(played)
            return _answer(_refusal(call, f"flakestorm replay: {played}"))
        if not self._live:
            return self._refused(call, played)
        self._left(played.site)
        return call

    def _left(self, site: Site) -> None:
        if self.forked is None:
            self.leave()
            self.forked = site

    def _refused(self, call: Call, played: Played) -> Flow:
        self.unanswered.append(played)
        return _answer(_refusal(call, f"flakestorm: the tape does not answer this: {played}"))

    def _is_beyond(self, match: Match) -> bool:
        """Whether a call is no longer one of those that are played."""
        if self._end is None:
            return False
        if match.outcome in ("diverged", "extra"):
            return self.forked is not None
        return match.entry is not None and match.entry.n >= self._end

    def _reply(self, match: Match, *, again: bool = False) -> Reply | CallFailed:
        entry = match.entry
        heard_ms = None if entry is None else entry.reply.heard_ms(entry.end_ms)
        if heard_ms is not None and not again:
            self.recall(heard_ms)
        if entry is None or not entry.reply.status:
            return failure(entry.reply) if entry is not None else CallFailed("reset", "there is no entry")
        matcher, recorded = self._matcher, self._telling.heard(entry.reply)
        as_it_is = not match.rpc and matcher.heard_as_recorded(recorded.chunks)
        reply = served(recorded, None if as_it_is else matcher.heard, match.rpc)
        matcher.lanes.begin()
        as_recorded = as_it_is and match.verbatim and recorded is entry.reply and recorded.end == "eof"
        return reply.pipe(Playing(matcher, self._lock, entry.said if as_recorded else b""))


def _nothing(_: float) -> None:
    """Nobody asks for the time."""


def _done() -> None:
    """Nobody asks when."""


class Playing(Tap):
    """Notes when a call is over, so that it is known whether two were under way at once.

    `said` is what the exchange adds to the digest of a run if the reply is read to its end, where that is known: then
    request and reply are the recorded ones, byte by byte.
    """

    __slots__ = ("_lock", "_matcher", "said")

    def __init__(self, matcher: Matcher, lock: threading.Lock, said: bytes) -> None:
        self._matcher, self._lock, self.said = matcher, lock, said

    def end(self, error: BaseException | None) -> None:
        with self._lock:
            self._matcher.lanes.end()


def _answer(reply: Reply | CallFailed) -> Flow:
    """A flow that ends with this, without going further in."""
    return Answered(reply) if isinstance(reply, Reply) else _failing(reply)


def _failing(failure: CallFailed) -> Flow:
    raise failure
    yield


def _refusal(call: Call, text: str) -> Reply:
    """What a call is told that the tape does not answer, in the form in which its client expects errors."""
    if call.kind == "mcp" and call.wire:
        from flakestorm.wire.mcp.reply import failed

        return failed(call, text)
    if call.method == "CALL":
        from flakestorm.wire.values import raised

        return raised(LookupError(text))
    error = {"message": text, "type": MISMATCH, "code": MISMATCH, "status": "INVALID_ARGUMENT"}
    body = orjson.dumps({"type": "error", "error": error})
    fields = (("content-type", "application/json"), ("content-length", str(len(body))), ("x-should-retry", "false"))
    return Reply(400, fields, body, (), "Bad Request")


def _plainly(answer: str) -> str:
    """What a JSON-RPC answer says, in one way of writing it."""
    try:
        document = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return answer
    told = {key: value for key, value in document.items() if key != "id"} if isinstance(document, dict) else document
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS).decode()


def _number(entries: Sequence[Entry], site: Site) -> int:
    """The number of the exchange at this site.

    Raises:
        Misuse: there is none; the message names some that there are.
    """
    for entry in entries:
        if entry.site == site:
            return entry.n
    some = ", ".join(str(entry.site) for entry in entries[:10])
    raise Misuse(f"the tape has no {site}; it has {some}{' and more' if len(entries) > 10 else ''}")
