"""The MCP servers of a recorded run, played: what they say beside the answers to the agent's own calls.

Any other call of a recording has its reply and that is all. An MCP server also speaks of itself (`prompts.py`), asks
its client something, answers on a stream that was opened before, and knows its sessions from a handshake, which has to
be made again where a run leaves its tape (`handshakes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import Flow, Interceptor, chain, inward
from flakestorm.errors import CallFailed, StageError
from flakestorm.tape.handshakes import Handshakes
from flakestorm.tape.match import Entry
from flakestorm.tape.prompts import Prompt, openings_of, prompts_of
from flakestorm.tape.telling import Telling
from flakestorm.wire.mcp.protocol import OPEN

__all__ = ["Servers", "speak_mcp"]


def speak_mcp(entries: Sequence[Entry]) -> bool:
    """Whether there is an MCP server among those that were asked in a recorded run."""
    return any(entry.site.kind == "mcp" for entry in entries)


class Servers:
    """The MCP servers of one run that is played.

    Args:
        entries: what was recorded, in order of arrival.
        telling: puts the secrets that are known here into what they say.
        leaves: whether the run may leave its tape, so that live servers are asked.
    """

    def __init__(self, entries: Sequence[Entry], telling: Telling, *, leaves: bool = False) -> None:
        self._telling = telling
        self._prompts, self._openings = prompts_of(entries), openings_of(entries)
        self._handshakes = Handshakes() if leaves and any(map(_begins, entries)) else None

    def before_world(self, stage: Interceptor) -> Interceptor:
        """The stage, with what a live server needs to hear first right behind it."""
        return stage if self._handshakes is None else chain(stage, self._handshakes.stage)

    def played(
        self,
        call: Call,
        n: int,
        reply: Callable[[], Reply | CallFailed],
        *,
        asks: Callable[[Reply], object] | None = None,
    ) -> Flow | None:
        """How a server takes part in a call that is answered by the tape; None where the reply is all there is to it.

        Args:
            call: as it was made.
            n: the number of the recorded exchange that answers it.
            reply: gives the recorded reply; called when it is that one's turn.
            asks: of a question of a server's, which the agent answers: is told what it answers.
        """
        if (begins := self._openings.get(n)) is not None:
            return _opening(call, begins, reply)
        if asks is not None:
            return _asking(call, asks)
        prompts = self._prompts.get(n)
        return None if prompts is None else self._prompting(call, prompts, reply)

    def answered(self, call: Call, reply: Reply | CallFailed) -> None:
        """The tape has answered a call of kind `mcp`."""
        if self._handshakes is not None and isinstance(reply, Reply):
            self._handshakes.served(call, reply.headers)

    def _prompting(self, call: Call, prompts: Sequence[Prompt], reply: Callable[[], Reply | CallFailed]) -> Flow:
        """The server says something of itself before it answers."""
        for prompt in prompts:
            yield prompt.call(call.lane, self._telling.said(prompt.entry.spoken))
        found = reply()
        if isinstance(found, CallFailed):
            raise found
        return found


def _opening(call: Call, begins: bytes, reply: Callable[[], Reply | CallFailed]) -> Flow:
    """A stream on which the answers to other calls come: it is held open, and they come when they are served."""
    found = reply()
    held = yield replace(call, method=OPEN, body=begins, site=None)
    if held is None or not isinstance(found, Reply):
        raise found if isinstance(found, CallFailed) else StageError(f"{call.url} was answered by nothing")
    return Reply(found.status, found.headers, held.body, found.through, found.reason)


def _asking(call: Call, told: Callable[[Reply], object]) -> Flow:
    """The server asks its client, so it is the agent that answers."""
    reply = yield from inward(call)
    told(reply)
    return reply


def _begins(entry: Entry) -> bool:
    return entry.site.kind == "mcp" and entry.site.name == "initialize"
