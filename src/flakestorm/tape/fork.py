"""Fork: a recorded run made again, up to a site, and then something else.

The program itself runs again. Exchanges before the site are served from the tape, the site's own call gets a change,
and everything after it is live. Nothing here runs anything: a `Player` is a stage of somebody's pipeline, and a change
is a stage as well, so a fault is one, and so is a reply put in the place of the recorded one::

    fork = Fork(tape.exchanges())
    runner.hooks.within = lambda trial, inside: [fork.player(site).stage]             # resample
    runner.hooks.within = lambda trial, inside: [fork.player(site, kept=True).stage]  # the control: the same reply
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from flakestorm.core.call import Call, Reply, header, with_header, without_headers
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.core.site import Kind, Site
from flakestorm.errors import Misuse
from flakestorm.tape.match import Matcher, Mode
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.player import Player
from flakestorm.tape.serving import answering
from flakestorm.tape.telling import Telling
from flakestorm.tape.tokens import Span

__all__ = ["TOOLS", "Fork", "Tools", "giving"]

Tools = Literal["live", "tape"]
"""Who answers tools after the fork: the world, or the tape by what they are asked."""

TOOLS: tuple[Kind, ...] = ("tool", "mcp", "http")


class Fork:
    """A recorded run, of which any number of others may be forked.

    Args:
        exchanges: what was recorded, in order of arrival.
        mode: how requests are matched.
        spans: when the recording and the forks take place; see `Tokens`.
        threads: whether lanes are threads; see `Lanes`.
        telling: makes, for each player, what says calls as the tape would.
    """

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        *,
        mode: Mode = "renamed",
        spans: Iterable[Span] = (),
        threads: bool = True,
        telling: Callable[[], Telling] = Telling,
    ) -> None:
        self.exchanges = sorted(exchanges, key=lambda exchange: exchange.n)
        self._mode, self._spans, self._threads, self._telling = mode, tuple(spans), threads, telling

    @property
    def sites(self) -> tuple[Site, ...]:
        """Where it can be forked, in order of arrival."""
        return tuple(exchange.site for exchange in self.exchanges)

    def at(self, site: Site) -> Exchange:
        """What was recorded at this site.

        Raises:
            Misuse: nothing was; the message names some sites that there are.
        """
        for exchange in self.exchanges:
            if exchange.site == site:
                return exchange
        some = ", ".join(map(str, self.sites[:10])) or "none"
        raise Misuse(f"the tape has no {site}; it has {some}{' and more' if len(self.exchanges) > 10 else ''}")

    def player(
        self,
        site: Site | None,
        change: Interceptor | None = None,
        *,
        then: Interceptor | None = None,
        kept: bool = False,
        tools: Tools = "live",
    ) -> Player:
        """What plays the tape to one run. `Player.changed` says whether it came to the site, and `problems` what it
        did otherwise before.

        Args:
            site: the first exchange that is not played; None plays all, and refuses what goes beyond.
            change: the stage that has the call of this site; the world has it where None (resampling).
            then: the stage that has all later calls; the world where None.
            kept: whether the site's own call has the recorded reply, as the change leaves it.
            tools: who answers tools after the site.

        Raises:
            Misuse: the tape has no such site.
        """
        if site is not None:
            self.at(site)
        pinned = TOOLS if tools == "tape" else ()
        telling = self._telling()
        return Player(
            self._matcher(telling), until=site, at=change, kept=kept, then=then, pinned=pinned, telling=telling
        )

    def faulted(self, strays: Callable[[], bool], *, allow_live: bool) -> Player:
        """What plays the tape to one run with faults further out.

        Args:
            strays: whether a fault has fired by now. Until then nothing goes out, and what the tape does not answer is
                one of `Player.problems`.
            allow_live: whether what it does not answer afterwards goes out; it is one of `Player.unanswered` else.
        """
        telling = self._telling()
        return Player(self._matcher(telling), strays=strays, allow_live=allow_live, telling=telling)

    def _matcher(self, telling: Telling) -> Matcher:
        exchanges = map(telling.taped, self.exchanges)
        return Matcher(exchanges, mode=self._mode, spans=self._spans, threads=self._threads)


def giving(body: bytes, instead_of: Recorded) -> Interceptor:
    """The change that puts another body in the place of a recorded one, whose head it has.

    Args:
        body: all of it, without content encoding; of a stream its events, which are given one by one. A JSON-RPC answer
            gets the number of the call.
        instead_of: the recorded reply. What failed is given as a success.
    """
    headers = without_headers(instead_of.headers, "content-encoding", "transfer-encoding")
    if header(headers, "content-length") is not None:
        headers = with_header(headers, "content-length", str(len(body)))
    status = instead_of.status or 200

    def stage(call: Call) -> Flow:
        given = body if call.kind != "mcp" else answering(body, call.body)
        head = headers
        if given is not body and header(headers, "content-length") is not None:
            head = with_header(headers, "content-length", str(len(given)))
        pieces = _Pieces(given) if instead_of.stream else given
        return Reply(status, head, pieces, (), instead_of.reason if status == instead_of.status else "OK")
        yield call  # never reached: the world is not asked

    return stage


class _Pieces:
    """A stream's events, or its lines where it has none, as often as they are asked for."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        body = self._body.replace(b"\r\n", b"\n")
        mark = b"\n\n" if b"\n\n" in body else b"\n"
        for piece in body.split(mark):
            if piece.strip():
                yield piece + mark
