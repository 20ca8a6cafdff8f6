"""The tool results that any model request carries, by the wire it speaks.

A request of OpenAI's Responses API may hold results without the calls they answer, because the provider keeps the
conversation. Which tool a call id stands for was said in an earlier reply, so `CallNames` listens to replies. It reads
them only when somebody asks, and then as far as they have come: an agent may send its next request before it has let
go of the stream it acts upon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from flakestorm.core.call import PULL, Call, Chunks, Reply
from flakestorm.wire import (
    results_anthropic,
    results_gemini,
    results_ollama,
    results_openai_chat,
    results_openai_responses,
)
from flakestorm.wire.base import ToolCall, Wire
from flakestorm.wire.classify import UNNAMED, wire_of
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.results import Dialect, Result, Told, results, rewritten

__all__ = ["DIALECTS", "CallNames", "rewrite", "tool_results"]

DIALECTS: dict[str, Dialect] = {
    "openai_chat": results_openai_chat,
    "openai_responses": results_openai_responses,
    "anthropic": results_anthropic,
    "gemini": results_gemini,
    "ollama": results_ollama,
}
"""How tool results are spelled, by the name of the wire."""


def _nobody(_: str) -> str:
    return ""


def tool_results(wire: str, body: bytes, *, name_of: Callable[[str], str] = _nobody) -> tuple[Result, ...]:
    """The results of tools that the agent ran, in a request body, in conversation order.

    Args:
        wire: what `Call.wire` says; of a wire that is not known no result is found.
        body: the request body.
        name_of: a tool's name by call id, where the request does not show it: `CallNames.name_of`.
    """
    dialect = DIALECTS.get(wire)
    return () if dialect is None else results(dialect, body, name_of=name_of, unnamed=UNNAMED)


def rewrite(wire: str, body: bytes, changes: Iterable[tuple[Result, Told]]) -> bytes:
    """The request with these of its results telling something else, every other byte as it was.

    Raises:
        LookupError: a result is not of this body.
    """
    return rewritten(DIALECTS[wire], body, changes)


class CallNames:
    """Which tool each call id of a run stands for, as the models' replies said."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._heard: list[_Heard] = []
        self._lock = threading.Lock()  # agents ask from several threads

    def listen(self, call: Call, reply: Reply) -> Reply:
        """The reply, heard as it passes. One that no wire can read, and an error, is not listened to."""
        wire = wire_of(call.wire)
        if wire is None or reply.status >= 400:
            return reply
        heard = _Heard(wire, reply)

        def ear() -> Chunks:
            with self._lock:
                self._heard.append(heard)
            while (chunk := (yield PULL)) is not None:
                heard.chunks.append(chunk)
                yield chunk

        return reply.pipe(ear)

    def learn(self, calls: Iterable[ToolCall]) -> None:
        """Take in what a reply asked for."""
        self._names.update((call.id, call.name) for call in calls if call.id and call.name)

    def name_of(self, call_id: str) -> str:
        """The tool that this id stands for; empty if no reply so far said so."""
        if not call_id:
            return ""
        with self._lock:
            name = self._names.get(call_id)
            if name is None:
                self._read()
                name = self._names.get(call_id, "")
            return name

    def _read(self) -> None:
        """Take in what has been heard. Replies that have grown since they were last read are read again."""
        for heard in self._heard:
            if heard.read < len(heard.chunks):
                heard.read = len(heard.chunks)
                body = decode_body(b"".join(heard.chunks[: heard.read]), heard.reply.headers)
                self.learn(heard.wire.said(body, stream=heard.reply.streamed).tool_calls)


class _Heard:
    """A reply, as far as it has passed."""

    __slots__ = ("chunks", "read", "reply", "wire")

    def __init__(self, wire: Wire, reply: Reply) -> None:
        self.wire, self.reply = wire, reply
        self.chunks: list[bytes] = []
        self.read = 0
