"""`Call` and `Reply`: the only two things that cross an agent's boundary.

Both are frozen; an interceptor changes one by making another (`dataclasses.replace`, `Reply.pipe`).
A body is either bytes that are already here, or an opaque source that only a driver can read: the core never touches
a socket, so the same interceptors serve a blocking `requests` call, an asyncio stream and a replayed tape.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Generator, Iterable
from functools import lru_cache

from msgspec.structs import astuple, replace

from flakestorm.core.record import Record
from flakestorm.core.site import Kind, Site

__all__ = [
    "PULL",
    "Call",
    "Chunks",
    "Headers",
    "Pull",
    "Repeats",
    "Reply",
    "Sleep",
    "Source",
    "Tap",
    "Transducer",
    "header",
    "streamed",
    "track",
    "with_header",
    "without_headers",
]

Headers = tuple[tuple[str, str], ...]
"""Header fields in wire order, spelled as they were; names compare case-insensitively."""

Repeats = tuple[bytes, bytes, int]
"""What was found out when two bodies were compared: this one, an earlier one, and how many bytes both begin with."""

Source = Iterable[bytes] | AsyncIterable[bytes]
"""A body that has not been read yet: sync for the sync driver, async for the async one."""


class Pull:
    """What a transducer yields to ask for the next chunk from further in. Use the instance `PULL`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "PULL"


PULL = Pull()


class Sleep(Record, frozen=True):
    """Let this much time pass. Yielded by stages and transducers; a driver decides what passing time means."""

    seconds: float


Chunks = Generator[Pull | bytes | Sleep, bytes | None, None]
"""A transducer at work: yields `PULL` (and is sent a chunk, or None at the end), `bytes` to emit, or `Sleep`.

Raising `CallFailed` breaks the connection at that point. A client that leaves early, or a run that ends, closes the
generator (`GeneratorExit`), which is how a recorder learns of it.
"""

Transducer = Callable[[], Chunks]


class Tap:
    """A transducer that watches a body pass and changes nothing.

    It is told of each chunk before the chunk goes on, and once of the end. Being known to be harmless, a tap costs one
    plain call per chunk where a generator costs a dozen steps; called, it is an ordinary transducer.
    """

    __slots__ = ()

    def chunk(self, data: bytes) -> None:
        """These bytes pass."""

    def end(self, error: BaseException | None) -> None:
        """The body is over: None at its end, `GeneratorExit` where the reader left early, else what broke it."""

    def __call__(self) -> Chunks:
        """The same as a generator, for a place between other transducers."""
        try:
            while (chunk := (yield PULL)) is not None:
                self.chunk(chunk)
                yield chunk
        except BaseException as error:
            self.end(error)
            raise
        self.end(None)


class Call(Record, frozen=True):
    """One outbound request of the agent.

    Args:
        method: HTTP method, upper case. Calls that are not HTTP (plain functions, draws) use `CALL`; `CONNECT` is a
            tunnel that nobody looked into, and `TLS` a connection that came to nothing before there was a request.
        url: the absolute URL the agent meant to reach, before any redirection to a gateway.
        headers: as the agent sent them.
        body: the request body; empty while `upload` holds a streamed one.
        upload: a request body that is still being produced, to be read by the driver only; calls are equal without it.
        kind, name: what kind of thing is called and by what name; set by the classify stage.
        wire: name of the wire protocol that understands the body (`openai_chat`, ...); empty when opaque.
        lane: which concurrent thread of the agent this call belongs to; see `track`.
        site: address within the run; set by the classify stage.
        patience_s: how long the agent's own client will wait for bytes, in seconds; None when the seam cannot know.
        repeats: what was found out when this body was compared with an earlier one, so that nobody need do it again:
            this body, that one, and how many bytes both begin with. Not part of what a call is; who uses it makes sure
            that the bodies are still those.
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    upload: object = None
    kind: Kind = "http"
    name: str = ""
    wire: str = ""
    lane: str = ""
    site: Site | None = None
    patience_s: float | None = None
    repeats: Repeats | None = None

    def __repr__(self) -> str:
        said = (f"{n}={getattr(self, n)!r}" for n in self.__struct_fields__ if n not in ("upload", "repeats"))
        return f"Call({', '.join(said)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self._said() == other._said()

    def __hash__(self) -> int:
        return hash(self._said())

    def _said(self) -> tuple[object, ...]:
        return astuple(replace(self, upload=None, repeats=None))


class Reply(Record, frozen=True):
    """The answer to a call.

    Args:
        status: HTTP status; calls that are not HTTP use 200 for a result and 500 for an exception.
        headers: as they came, or as a fault made them.
        body: bytes, or a `Source` that only the driver reads.
        through: transducers the body passes on its way to the agent, innermost first.
        reason: the HTTP reason phrase, where there was one.
    """

    status: int = 200
    headers: Headers = ()
    body: bytes | Source = b""
    through: tuple[Transducer, ...] = ()
    reason: str = ""

    def pipe(self, transducer: Transducer) -> Reply:
        """The same reply with one more transducer, outside those already attached."""
        return Reply(self.status, self.headers, self.body, (*self.through, transducer), self.reason)

    @property
    def streamed(self) -> bool:
        """Whether the body arrives as a stream of events (SSE or NDJSON) rather than as one document."""
        return streamed(self.headers)


def streamed(headers: Headers) -> bool:
    """Whether a body with these headers is a stream of events."""
    for name, value in headers:
        if len(name) == 12 and name.lower() == "content-type":
            return _is_stream(value)
    return False


@lru_cache(maxsize=256)
def _is_stream(kind: str) -> bool:
    kind = kind.partition(";")[0].strip().lower()
    return kind in ("text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream")


def header(headers: Headers, name: str) -> str | None:
    """The first value of a header, compared case-insensitively, or None."""
    name, length = name.lower(), len(name)
    for key, value in headers:
        if len(key) == length and key.lower() == name:
            return value
    return None


def without_headers(headers: Headers, *names: str) -> Headers:
    """The headers without these names (compared case-insensitively)."""
    drop = {n.lower() for n in names}
    return tuple((k, v) for k, v in headers if k.lower() not in drop)


def with_header(headers: Headers, name: str, value: str) -> Headers:
    """The headers with exactly one field of this name."""
    return (*without_headers(headers, name), (name, value))


def track(lane: str) -> str:
    """What stands for a lane where calls are likely to go on from one another: the lane itself, or, as each job of a
    pool is a lane of its own (`1.job2`), one thing for all lanes that are named by who started them. A conversation
    whose every turn is a job would else begin anew with each."""
    return "." if "." in lane else lane
