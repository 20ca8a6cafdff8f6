"""The one pipeline every call crosses, sans I/O.

An *interceptor* is a function from a `Call` to a generator. Inside it yields what it wants done; outside, a driver
does it::

    def outage(call: Call) -> Flow:
        if call.name == "search":
            return Reply(503)              # never goes inward: the world is not asked
        reply = yield call                 # go inward, perhaps with a changed call
        yield Sleep(0.2)                   # let time pass
        return reply                       # come back out, perhaps with a changed reply

`chain(*stages)` composes interceptors, outermost first. `drive` and `adrive` run the same generators for blocking and
asyncio callers; they are told how to `send` and how to `sleep`, so nothing here knows a socket, a clock or an event
loop. What `send` raises is thrown into the generator at its `yield call`, so a stage may catch, observe or replace a
failure with ordinary `try`/`except`.

Most stages have little to do with most calls. A stage to which the reply is nothing may give the call itself, as it is
to go inward; one that only looks at the reply gives a `Passing`, which is to a call what a `Tap` is to a body. Where
every stage does, no generator runs at all; nor where a stage that answers a call itself gives an `Answered`.

The shape (requests out, replies in, one generator for sync and async) is httpx's auth flow; that a wrapper that breaks
the rules is named by file and line is pluggy's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from flakestorm.core.call import Call, Headers, Reply, Sleep, Tap
from flakestorm.errors import StageError

__all__ = ["Answered", "Flow", "Interceptor", "Passing", "Watching", "adrive", "chain", "drive", "inward"]

Flow = Generator[Call | Sleep, Reply | None, Reply]
"""An interceptor at work: yields `Call` (and is sent its `Reply`) or `Sleep` (and is sent None); returns a `Reply`."""


if TYPE_CHECKING:
    _Flow = Flow
else:  # an abstract base class would make each look at a flow's type cost more than the flow
    _Flow = object


class Interceptor(Protocol):
    """Anything that maps a call to a flow; usually a generator function or a closure over one.

    A call in place of a flow goes inward, and its reply goes outward as it comes.
    """

    def __call__(self, call: Call, /) -> Flow | Call: ...


class Passing(_Flow):
    """The flow of a stage that lets a call pass and, perhaps, looks at what comes back.

    It wants one thing: that `call` goes inward, once. A driver that knows this asks it with two plain calls, where a
    generator costs a dozen steps. Driven like any other flow, it behaves as this generator would::

        try:
            reply = yield call
        except BaseException as error:
            self.failed(error)
            raise
        return self.answered(reply)
    """

    __slots__ = ("call",)

    def __init__(self, call: Call) -> None:
        self.call = call

    def answered(self, reply: Reply) -> Reply:
        """The reply has come; gives what goes on outward."""
        return reply

    def failed(self, error: BaseException) -> None:
        """There is no reply: this was raised further in, and goes on outward. `GeneratorExit` where nobody waits."""

    def send(self, value: Reply | None, /) -> Call | Sleep:
        """A step of the generator."""
        if value is None:
            return self.call
        raise StopIteration(self.answered(value))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Call | Sleep:
        return self.call

    def throw(self, error: Any, /, *_: object) -> Call | Sleep:
        """A step of the generator."""
        self.failed(error)
        raise error

    def close(self) -> None:
        """The end of a generator that waits for its reply; not to be called on one that has ended."""
        self.failed(GeneratorExit())


class Watching(Passing):
    """A `Passing` that does nothing to a reply but attach a tap, so that the world's own reply can be handed on."""

    __slots__ = ()

    def watched(self, status: int, headers: Headers, reason: str) -> Tap:
        """The world's reply begins so; gives the tap that its body passes. A seam may ask this in place of `answered`,
        and no `Reply` need be made."""
        raise NotImplementedError

    def answered(self, reply: Reply) -> Reply:
        return reply.pipe(self.watched(reply.status, reply.headers, reply.reason))


class Answered(_Flow):
    """The flow of a stage that has the reply and asks nobody. Driven like any other, it ends with it at once."""

    __slots__ = ("reply",)

    def __init__(self, reply: Reply) -> None:
        self.reply = reply

    def send(self, value: Reply | None, /) -> Call | Sleep:
        """The only step of the generator."""
        raise StopIteration(self.reply)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Call | Sleep:
        raise StopIteration(self.reply)

    def throw(self, error: Any, /, *_: object) -> Call | Sleep:
        """The generator is asked to stop."""
        raise error

    def close(self) -> None:
        """There is nothing to be let go of."""


class _Passed(Passing):
    """Several in one, outermost first."""

    __slots__ = ("_passing",)

    def __init__(self, call: Call, passing: list[Passing]) -> None:
        self.call, self._passing = call, passing

    def answered(self, reply: Reply) -> Reply:
        passing = self._passing
        at = len(passing)
        try:
            while at:
                at -= 1
                reply = passing[at].answered(reply)
        except BaseException as error:
            _fail(passing[:at], error)
            raise
        return reply

    def failed(self, error: BaseException) -> None:
        _fail(self._passing, error)


def _fail(passing: Sequence[Passing], error: BaseException) -> None:
    for each in reversed(passing):
        each.failed(error)


def inward(call: Call) -> Flow:
    """`reply = yield from inward(call)` is `reply = yield call`, with the type said: a call is answered by a reply."""
    reply = yield call
    if reply is None:
        raise StageError(f"the call to {call.url} was answered by nothing; a driver must send a Reply")
    return reply


def chain(*stages: Interceptor) -> Callable[[Call], Flow]:
    """Compose interceptors, outermost first. With none, the call goes straight to the world.

    Stages are asked at once as far as they let the call pass. The first that wants more, and all further in, run when
    the flow does.

    Raises:
        StageError: when a stage gives no flow, yields anything but a `Call` or a `Sleep`, or returns anything but a
            `Reply`. The message names the stage's file and line.
    """

    def enter(call: Call) -> Flow:
        passing: list[Passing] = []
        further = iter(stages)
        try:
            for stage in further:
                flow = stage(call)
                if type(flow) is Call:
                    call = flow
                elif isinstance(flow, Passing):
                    call = flow.call
                    passing.append(flow)
                elif type(flow) is Answered:
                    return _answered(flow, call, passing) if passing else flow
                else:
                    return _run([*passing, _flow(flow, stage)], tuple(further))
        except BaseException as error:  # it belongs to the flow, as what a generator raises does
            return _run([*passing, _raising(error)], ())
        if len(passing) == 1 and passing[0].call is call:
            return passing[0]
        return _Passed(call, passing)

    return enter


def _answered(flow: Answered, call: Call, passing: list[Passing]) -> Flow:
    try:
        return Answered(_Passed(call, passing).answered(flow.reply))
    except BaseException as error:  # those around the stage that raised this know of it
        return _raising(error)


def _raising(error: BaseException) -> Flow:
    raise error
    yield


def _run(running: list[Flow], further: Sequence[Interceptor]) -> Flow:
    """Flows within flows; the innermost of `running` is yet to be started, and within it the `further` stages."""
    # A loop over a stack of running stages rather than nested generators: half the cost per stage.
    first, depth = len(running), len(running) + len(further)
    want: Call | Sleep | None = None
    result: Reply | None = None
    failure: BaseException | None = None
    try:
        while True:
            if isinstance(want, Call) and len(running) < depth:
                try:
                    stage = further[len(running) - first]
                    running.append(_flow(stage(want), stage))
                except BaseException as error:  # of the stage; those around it learn of it
                    failure = error
            elif want is not None:
                try:
                    result = yield want
                except GeneratorExit:
                    raise
                except BaseException as error:  # what the world raised, or a caller that waits no longer
                    failure = error
                else:
                    if isinstance(want, Call):
                        _reply(result, "the driver's send")
            while True:  # on with the innermost running stage; when it ends, with the one around it
                flow = running[-1]
                try:
                    want = flow.send(result) if failure is None else flow.throw(failure)
                except StopIteration as stop:
                    result, failure = stop.value, None
                    if not isinstance(result, Reply):
                        _not_a_reply(result, flow)
                except BaseException as error:
                    result, failure = None, error
                else:
                    result = failure = None
                    if isinstance(want, (Call, Sleep)):
                        break
                    raise StageError(
                        f"{_where(flow)}: a stage may yield a Call (to go inward) or a Sleep, but yielded {want!r}"
                    )
                running.pop()
                if not running:
                    if failure is not None:
                        raise failure
                    return cast(Reply, result)
    finally:
        for flow in reversed(running):
            flow.close()


def _flow(flow: Flow | Call, stage: Interceptor) -> Flow:
    if isinstance(flow, Call):
        return Passing(flow)
    if type(flow) is not GeneratorType and not isinstance(flow, (Passing, Answered, Generator)):
        raise StageError(
            f"{_where(stage)}: a stage must be a generator function, but calling it gave {flow!r}; "
            "yield the call to go inward, or add an unreachable `yield` if it never does"
        )
    return flow


# `drive` and `adrive` are twins on purpose: every call of an agent passes one of them, and making the blocking one by
# stepping the other's coroutine costs more than all the rest of it. Whatever can decide anything is in the flow.


def drive(flow: Flow | Call, send: Callable[[Call], Reply], sleep: Callable[[float], None]) -> Reply:
    """Run a flow for a blocking caller.

    Args:
        flow: what an interceptor returned for a call.
        send: asks the world; what it raises is thrown into the flow.
        sleep: lets seconds pass; may raise (a caller's own time-out), which is thrown into the flow too.
    """
    if isinstance(flow, Call):
        flow = Passing(flow)
    if isinstance(flow, Passing):
        try:
            reply = _reply(send(flow.call), "the driver's send")
        except BaseException as error:
            flow.failed(error)
            raise
        return _reply(flow.answered(reply), "a flow")
    if type(flow) is Answered:
        return _reply(flow.reply, "a flow")
    result: Reply | None = None
    failure: BaseException | None = None
    try:
        while True:
            try:
                want = flow.send(result) if failure is None else flow.throw(failure)
            except StopIteration as stop:
                return _reply(stop.value, "a flow")
            result = failure = None
            try:
                if isinstance(want, Sleep):
                    sleep(want.seconds)
                else:
                    result = send(want)
            except BaseException as error:  # every failure belongs to the flow first, also KeyboardInterrupt
                failure = error
    finally:
        flow.close()


async def adrive(
    flow: Flow | Call, send: Callable[[Call], Awaitable[Reply]], sleep: Callable[[float], Awaitable[None]]
) -> Reply:
    """Run a flow for an asyncio caller; otherwise exactly `drive`. Cancellation is thrown into the flow as well."""
    if isinstance(flow, Call):
        flow = Passing(flow)
    if isinstance(flow, Passing):
        try:
            reply = _reply(await send(flow.call), "the driver's send")
        except BaseException as error:
            flow.failed(error)
            raise
        return _reply(flow.answered(reply), "a flow")
    if type(flow) is Answered:
        return _reply(flow.reply, "a flow")
    result: Reply | None = None
    failure: BaseException | None = None
    try:
        while True:
            try:
                want = flow.send(result) if failure is None else flow.throw(failure)
            except StopIteration as stop:
                return _reply(stop.value, "a flow")
            result = failure = None
            try:
                if isinstance(want, Sleep):
                    await sleep(want.seconds)
                else:
                    result = await send(want)
            except BaseException as error:  # as in drive; CancelledError included
                failure = error
    finally:
        flow.close()


def _reply(value: object, who: str) -> Reply:
    if not isinstance(value, Reply):
        raise StageError(f"{who} must give a Reply, but gave {value!r}")
    return value


def _not_a_reply(value: object, flow: Flow) -> None:
    raise StageError(
        f"{_where(flow)}: a stage must return a Reply, but returned {value!r}"
        + ("; did it forget `return reply`?" if value is None else "")
    )


def _where(thing: object) -> str:
    """FILE:LINE (NAME) of a stage or of a running flow, for error messages."""
    frame = getattr(thing, "gi_frame", None)
    code = getattr(thing, "gi_code", None) or getattr(thing, "__code__", None)
    if code is None:  # an instance with __call__
        code = getattr(getattr(type(thing), "__call__", None), "__code__", None)  # noqa: B004 -- its code is wanted
    if code is None:
        return repr(thing)
    line = frame.f_lineno if frame is not None else code.co_firstlineno
    return f"{code.co_filename}:{line} ({code.co_qualname})"
