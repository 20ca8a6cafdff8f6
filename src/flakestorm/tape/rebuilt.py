"""The digest of a replay, built again from what the agent asked and got.

A recorder hashes what passes it. Where the player knows a request to be the recorded one, byte by byte, and gives the
recorded reply as it is, their hash is the recorded one too once the agent has read all of it; so nothing is noted then.
Everything else is recorded, and so is what an agent leaves before its end.
"""

from __future__ import annotations

from flakestorm.core.call import Call, Reply, Tap
from flakestorm.core.pipeline import Flow, Passing
from flakestorm.tape.player import Playing
from flakestorm.tape.writer import Recorder

__all__ = ["Rebuilt"]


class Rebuilt:
    """The stage around a player that never asks the world: every call is answered, or refused, as it comes.

    Args:
        recorder: gives the digest; it writes no file and keeps nothing.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.open: set[_Vouched] = set()
        """Replies that the agent has not read to their end."""

    def outer(self, call: Call) -> Flow:
        """The stage."""
        return _Rebuilding(call, self)

    def close(self) -> None:
        """The run is over, and so is the recorder's; what is open is as it was left."""
        for each in list(self.open):
            each.noted()
        self.recorder.close()


class _Rebuilding(Passing):
    __slots__ = ("_rebuilt",)

    def __init__(self, call: Call, rebuilt: Rebuilt) -> None:
        self.call, self._rebuilt = call, rebuilt

    def answered(self, reply: Reply) -> Reply:
        through = reply.through
        last = through[-1] if through else None
        if type(last) is Playing and last.said:
            return reply.pipe(_Vouched(self.call, reply, last.said, self._rebuilt))
        return self._rebuilt.recorder.outer(self.call).answered(reply)

    def failed(self, error: BaseException) -> None:
        self._rebuilt.recorder.outer(self.call).failed(error)


class _Vouched(Tap):
    """A reply of which it is known what its exchange adds to the digest."""

    __slots__ = ("_call", "_chunks", "_n", "_rebuilt", "_reply", "_said")

    def __init__(self, call: Call, reply: Reply, said: bytes, rebuilt: Rebuilt) -> None:
        self._call, self._reply, self._said, self._rebuilt = call, reply, said, rebuilt
        self._chunks: list[bytes] = []
        self._n = rebuilt.recorder.begin()
        rebuilt.open.add(self)

    def chunk(self, data: bytes) -> None:
        self._chunks.append(data)

    def end(self, error: BaseException | None) -> None:
        self._rebuilt.open.discard(self)
        if error is None:
            self._rebuilt.recorder.vouched(self._call.lane, self._n, self._said)
        else:
            self.noted().end(error)

    def noted(self) -> Tap:
        """What the recorder makes of it, with all that has passed so far."""
        at, reply = self._rebuilt.recorder.outer(self._call, self._n), self._reply
        tap = at.watched(reply.status, reply.headers, reply.reason)
        for chunk in self._chunks:
            tap.chunk(chunk)
        return tap
