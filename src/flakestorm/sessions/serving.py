"""The recorded tool replies of one session at work in one run: the model is live, the listed tools never are.

The n-th call of a tool gets the n-th reply that the session holds of it. Where a seam sees the tool's call, the call is
answered and never goes out. A tool that nobody can see (a function inside a launched agent) has run when its result
comes by in the next model request; there the recorded reply takes the result's place, and every later request says the
same. A call beyond the last recorded reply is not sent to the live tool and not answered by an older reply: it fails,
in words that say so, and the run can no longer pass.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from flakestorm.config.replays import ToolResponse
from flakestorm.core.call import Call, Headers, Reply, Sleep, Tap
from flakestorm.core.pipeline import Flow
from flakestorm.core.site import Site
from flakestorm.errors import StageError
from flakestorm.faults.promises import Promises
from flakestorm.sessions.replies import reply_of, told_of
from flakestorm.wire.conversation import CallNames, holds_results, rewrite, tool_results
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.mcp.protocol import Mcp, works
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.results import Key, Result, Told

__all__ = ["Served", "Serving"]

_KEEPERS = ("openai_responses", "interactions")
"""Wires whose provider may keep the conversation, so that a result can come without the call it answers."""


@dataclass(frozen=True, slots=True)
class Served:
    """A recorded reply that the agent got.

    Args:
        site: the tool, and which of its calls.
        response: what was recorded.
        where: `call`: its call was answered; `result`: the result it had was replaced on its way to the model.
    """

    site: Site
    response: ToolResponse
    where: Literal["call", "result"]


@dataclass(slots=True)
class _Heard(Tap):
    """A model's reply as it passes, for the names of the calls it asks for."""

    wire: str
    status: int
    headers: Headers
    stream: bool
    chunks: list[bytes] = field(default_factory=list)

    @property
    def reply(self) -> _Heard:
        return self

    def chunk(self, data: bytes) -> None:
        self.chunks.append(data)


class Serving:
    """The stage of one run; afterwards, what came of it.

    Args:
        responses: what the session's tools said, in order.
    """

    def __init__(self, responses: Iterable[ToolResponse]) -> None:
        self.responses: Sequence[ToolResponse] = tuple(responses)
        self._recorded: dict[str, list[ToolResponse]] = {}
        for response in self.responses:
            self._recorded.setdefault(response.tool, []).append(response)
        self.served: list[Served] = []
        self.calls: Counter[str] = Counter()
        self.known: set[str] = set()
        """Tools that the model was offered."""
        self._crossed: set[str] = set()
        self._told: dict[Key, Told] = {}
        self._heard: list[_Heard] = []
        self._names = CallNames(lambda: self._heard)
        self._promises = Promises()
        self._lock = threading.Lock()  # an agent's threads share it

    @property
    def tools(self) -> Sequence[str]:
        """The listed tools."""
        return tuple(self._recorded)

    @property
    def short(self) -> dict[str, int]:
        """Tools that were called more often than the session has replies of them, with how many it has."""
        return {name: len(has) for name, has in self._recorded.items() if self.calls[name] > len(has)}

    @property
    def uncalled(self) -> tuple[str, ...]:
        """Listed tools that were never called."""
        return tuple(name for name in self._recorded if not self.calls[name])

    def __call__(self, call: Call) -> Flow | Call:
        if not self._recorded:
            return call
        if call.kind == "llm":
            return self._model(call)
        if call.name in self._recorded and (call.kind in ("tool", "http") or (call.kind == "mcp" and works(call))):
            return self._tool(call)
        return self._listing(call) if call.wire == Mcp.name and call.name == "tools/list" else call

    def _listing(self, call: Call) -> Flow:
        reply = yield call
        return self._promises.noted(call, _given(reply))

    def _tool(self, call: Call) -> Flow:
        with self._lock:
            self._crossed.add(call.name)
            response = self._next(call.name, "call")
        if response.latency_ms:
            yield Sleep(response.latency_ms / 1000)
        return reply_of(call, response, self._promises.of(call.name))

    def _model(self, call: Call) -> Flow:
        wire = wire_of(call.wire)
        body = decode_body(call.body, call.headers)
        if wire is not None:
            self.known.update(wire.asked(body).tools)
        delay_ms = 0
        if holds_results(call.wire, call.body):
            found = tool_results(call.wire, call.body, name_of=self._names.name_of)
            with self._lock:
                before = len(self.served)
                changes = self._changes(found)
                delay_ms = sum(each.response.latency_ms or 0 for each in self.served[before:])
            if changes:
                call = replace(call, body=rewrite(call.wire, call.body, changes))
        if delay_ms:
            yield Sleep(delay_ms / 1000)
        reply = _given((yield call))
        if call.wire not in _KEEPERS:  # elsewhere every request says of which tool its results are
            return reply
        heard = _Heard(call.wire, reply.status, reply.headers, reply.streamed)
        self._heard.append(heard)
        return reply.pipe(heard)

    def _changes(self, found: Iterable[Result]) -> list[tuple[Result, Told]]:
        changes = []
        for result in found:
            if result.name not in self._recorded or result.name in self._crossed:
                continue
            if result.key not in self._told:
                self._told[result.key] = told_of(self._next(result.name, "result"))
            changes.append((result, self._told[result.key]))
        return changes

    def _next(self, tool: str, where: Literal["call", "result"]) -> ToolResponse:
        """The reply to the next call of this tool; where none is left, one that says so."""
        self.calls[tool] += 1
        n, recorded = self.calls[tool], self._recorded[tool]
        if n > len(recorded):
            held = f"{len(recorded)} recorded repl{'y' if len(recorded) == 1 else 'ies'}"
            words = f"flakestorm: the session holds {held} of {tool}, and this is call {n}"
            return ToolResponse(tool=tool, response={"error": words}, status=503)
        self.served.append(Served(Site("tool", tool, n), recorded[n - 1], where))
        return recorded[n - 1]


def _given(reply: Reply | None) -> Reply:
    if reply is None:
        raise StageError("a call was answered by nothing; a driver must send a Reply")
    return reply
