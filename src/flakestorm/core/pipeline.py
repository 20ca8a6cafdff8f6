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

The shape (requests out, replies in, one generator for sync and async) is httpx's auth flow; that a wrapper that breaks
the rules is named by file and line is pluggy's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from types import GeneratorType
from typing import Protocol, cast

from flakestorm.core.call import Call, Reply, Sleep
from flakestorm.errors import StageError

__all__ = ["Flow", "Interceptor", "adrive", "chain", "drive"]

Flow = Generator[Call | Sleep, Reply | None, Reply]
"""An interceptor at work: yields `Call` (and is sent its `Reply`) or `Sleep` (and is sent None); returns a `Reply`."""


class Interceptor(Protocol):
    """Anything that maps a call to a flow; usually a generator function or a closure over one."""

    def __call__(self, call: Call, /) -> Flow: ...


def chain(*stages: Interceptor) -> Interceptor:
    """Compose interceptors, outermost first. With none, the call goes straight to the world.

    Raises:
        StageError: while running, when a stage is not a generator function, yields anything but a `Call` or a
            `Sleep`, or returns anything but a `Reply`. The message names the stage's file and line.
    """
    depth = len(stages)

    def run(call: Call) -> Flow:
        # A loop over a stack of running stages rather than nested generators: half the cost per stage.
        running: list[Flow] = []
        want: Call | Sleep = call
        result: Reply | None = None
        failure: BaseException | None = None
        try:
            while True:
                if isinstance(want, Call):
                    if len(running) < depth:
                        running.append(_started(stages[len(running)], want))
                    else:
                        try:
                            result = yield want
                        except GeneratorExit:
                            raise
                        except BaseException as error:  # handed to the stage, which re-raises what it does not want
                            failure = error
                        else:
                            if not isinstance(result, Reply):
                                _reply(result, "the driver's send")
                        if not running:
                            if failure is not None:
                                raise failure
                            return cast(Reply, result)
                else:
                    try:
                        yield want
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # a caller that waits no longer
                        failure = error
                while True:  # on with the innermost running stage; when it ends, with the one around it
                    flow = running[-1]
                    try:
                        want = flow.send(result) if failure is None else flow.throw(failure)
                    except StopIteration as stop:
                        result, failure = stop.value, None
                        if not isinstance(result, Reply):
                            _not_a_reply(result, stages[len(running) - 1])
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

    return run


def _started(stage: Interceptor, call: Call) -> Flow:
    flow = stage(call)
    if type(flow) is not GeneratorType and not isinstance(flow, Generator):
        raise StageError(
            f"{_where(stage)}: a stage must be a generator function, but calling it gave {flow!r}; "
            "yield the call to go inward, or add an unreachable `yield` if it never does"
        )
    return flow


def drive(flow: Flow, send: Callable[[Call], Reply], sleep: Callable[[float], None]) -> Reply:
    """Run a flow for a blocking caller.

    Args:
        flow: what an interceptor returned for a call.
        send: asks the world; what it raises is thrown into the flow.
        sleep: lets seconds pass; may raise (a caller's own time-out), which is thrown into the flow too.
    """
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
    flow: Flow, send: Callable[[Call], Awaitable[Reply]], sleep: Callable[[float], Awaitable[None]]
) -> Reply:
    """Run a flow for an asyncio caller; otherwise exactly `drive`. Cancellation is thrown into the flow as well."""
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


def _not_a_reply(value: object, stage: Interceptor) -> Reply:
    raise StageError(
        f"{_where(stage)}: a stage must return a Reply, but returned {value!r}"
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
