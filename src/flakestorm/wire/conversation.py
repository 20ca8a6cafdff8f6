"""The tool results that any model request carries, by the wire it speaks.

A request of OpenAI's Responses API may hold results without the calls they answer, because the provider keeps the
conversation. Which tool a call id stands for was said in an earlier reply, which is on the run's record. `CallNames`
reads replies there, only when somebody asks, and then as far as they have come: an agent may send its next request
before it has let go of the stream it acts upon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from flakestorm.core.call import Headers
from flakestorm.wire.base import ToolCall
from flakestorm.wire.classify import UNNAMED
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.results import Dialect, Reading, Result, Told, results, rewritten

__all__ = ["DIALECTS", "CallNames", "Noted", "dialect_of", "holds_results", "results_read", "rewrite", "tool_results"]

DIALECTS = {
    "openai_chat": "openai_chat.results",
    "openai_responses": "openai_responses.results",
    "anthropic": "anthropic.results",
    "gemini": "gemini.results",
    "ollama": "ollama.results",
    "completions": "cohere_results",
    "interactions": "interactions_results",
}
"""The wires whose requests carry tool results that can be rewritten, and the module that says how they are spelled."""

_SIGNED = {"bedrock": "bedrock_results", "bedrock_invoke": "anthropic.results"}
"""Those whose requests are signed with their bodies, so that results in them can be read and not rewritten."""


@cache
def dialect_of(wire: str) -> Dialect | None:
    """How a wire spells tool results; None if it carries none that can be rewritten, or is not known."""
    return cast(Dialect, import_module(f"flakestorm.wire.{DIALECTS[wire]}")) if wire in DIALECTS else None


@cache
def _reading_of(wire: str) -> Reading | None:
    signed = _SIGNED.get(wire)
    return cast(Reading, import_module(f"flakestorm.wire.{signed}")) if signed else dialect_of(wire)


_ESCAPE = b"\\u00"  # how JSON may write a letter, though nobody does


def _nobody(_: str) -> str:
    return ""


def tool_results(wire: str, body: bytes, *, name_of: Callable[[str], str] = _nobody) -> tuple[Result, ...]:
    """The results of tools that the agent ran, in a request body, in conversation order, as far as they can be
    rewritten.

    Args:
        wire: what `Call.wire` says; of a wire that is not known no result is found.
        body: the request body.
        name_of: a tool's name by call id, where the request does not show it: `CallNames.name_of`.
    """
    return _found(dialect_of(wire), body, name_of)


def results_read(wire: str, body: bytes, *, name_of: Callable[[str], str] = _nobody) -> tuple[Result, ...]:
    """The same, and also those that nobody can rewrite, because the request is signed with its body (Bedrock)."""
    return _found(_reading_of(wire), body, name_of)


def _found(dialect: Reading | None, body: bytes, name_of: Callable[[str], str]) -> tuple[Result, ...]:
    if dialect is None or not (dialect.holds(body) or _ESCAPE in body):
        return ()
    return results(dialect, body, name_of=name_of, unnamed=UNNAMED)


def holds_results(wire: str, body: bytes) -> bool:
    """Whether a request body may hold results that can be rewritten; most do not, and are not worth reading."""
    dialect = dialect_of(wire)
    return dialect is not None and (dialect.holds(body) or _ESCAPE in body)


def rewrite(wire: str, body: bytes, changes: Iterable[tuple[Result, Told]]) -> bytes:
    """The request with these of its results telling something else, every other byte as it was.

    Raises:
        LookupError: a result is not of this body, or none of this wire can be rewritten.
    """
    dialect = dialect_of(wire)
    if dialect is None:
        raise LookupError(f"requests of the wire {wire!r} carry no tool results that can be rewritten")
    return rewritten(dialect, body, changes)


class NotedReply(Protocol):
    """A reply as it was noted, whole or as far as it has passed."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def chunks(self) -> Sequence[bytes]: ...
    @property
    def stream(self) -> bool: ...


class Noted(Protocol):
    """What a record of the run (a tape's exchange) says of one call."""

    @property
    def wire(self) -> str: ...
    @property
    def reply(self) -> NotedReply: ...


class CallNames:
    """Which tool each call id of a run stands for, as the models' replies said.

    Args:
        noted: gives what was said so far: the run's calls in order of arrival, to which later ones are added.
    """

    def __init__(self, noted: Callable[[], Sequence[Noted]] = tuple) -> None:
        self._noted = noted
        self._names: dict[str, str] = {}
        self._read: list[int] = []  # how many chunks of each reply have been read
        self._lock = threading.Lock()  # agents ask from several threads

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
                self._catch_up()
                name = self._names.get(call_id, "")
            return name

    def _catch_up(self) -> None:
        """Take in what has been said. Replies that have grown since they were last read are read again."""
        noted = self._noted()
        self._read += [0] * (len(noted) - len(self._read))
        for at, each in enumerate(noted):
            reply = each.reply
            count = len(reply.chunks)
            if count == self._read[at]:
                continue
            self._read[at] = count
            wire = wire_of(each.wire)
            if wire is not None and reply.status < 400:
                body = decode_body(b"".join(reply.chunks[:count]), reply.headers)
                self.learn(wire.said(body, stream=reply.stream).tool_calls)
