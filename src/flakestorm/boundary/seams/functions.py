"""The seam in functions: tools that an agent calls in its own process.

A function is held from within (see `recode`): whoever has a reference to it, be it the agent's modules, a registry or a
framework that took it in when it was imported, calls the tool across the boundary. Methods are held for their own
object only. Callables without code of their own (partials, built-in functions) get a wrapper, which must be put in
their place.

A call is a call of the tool when it comes from outside: what a tool calls of itself, directly or by its other function
(a sync and an async one under one name), is its own affair. Everything else a tool calls crosses as usual.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from types import CodeType, FrameType, FunctionType, MappingProxyType, MethodType
from typing import Any, cast
from urllib.parse import quote

from flakestorm.boundary.patience import Patience
from flakestorm.boundary.seams.recode import Recoded
from flakestorm.boundary.session import Crossing, current
from flakestorm.boundary.timers import timers_on
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import adrive, drive
from flakestorm.core.stream import apump, pump
from flakestorm.errors import CallFailed, FlakestormError, Misuse
from flakestorm.wire.values import Parameters, error_of, raised, returned, value_of

__all__ = ["Held", "hold"]

Function = Callable[..., Any]

_inside: ContextVar[Mapping[str, object]] = ContextVar("flakestorm_tools", default=MappingProxyType({}))
"""The tools this context is inside of, and which of their functions."""

_lock = threading.Lock()
_held: dict[FunctionType, _Tools] = {}


class Held:
    """A tool's function while it is held.

    Args:
        function: what to call in its place: the function itself where it could be held from within.
        release: lets go of it; more than once does no harm.
    """

    __slots__ = ("_release", "function")

    def __init__(self, function: Function, release: Callable[[], None]) -> None:
        self.function = function
        self._release: Callable[[], None] | None = release

    def release(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


def hold(name: str, function: Function, *, pairs: bool = False) -> Held:
    """From now on, calls of this function made on a run's line cross as calls of the tool `name`.

    A blocking function called in an event loop's own thread blocks that loop while a fault lets time pass, as a slow
    tool would.

    Args:
        name: the tool's.
        function: a function, method or other callable, sync or async.
        pairs: it returns pairs of which only the first is what the tool says, and the second is for the program.

    Raises:
        Misuse: it is held already, as another tool.
    """
    if isinstance(function, FunctionType):
        return Held(function, _from_within(name, function, None, pairs))
    call = None if isinstance(function, type) else getattr(function, "__call__", None)  # noqa: B004 -- the method itself
    for method in (function, call):
        if isinstance(method, MethodType) and isinstance(method.__func__, FunctionType):
            return Held(function, _from_within(name, method.__func__, method.__self__, pairs))
    return Held(_crossing(name, function, pairs), lambda: None)


class _Tools:
    """The tools that one function is: one, or as a method one for each object it is held for."""

    def __init__(self, function: FunctionType) -> None:
        self.recoded = Recoded(function, self._dispatch)
        self.count = 0
        self.known: dict[int | None, tuple[str, Function]] = {}

    def _dispatch(self, *args: Any, **kwargs: Any) -> Any:
        if (tool := self.known.get(None)) is not None:
            return tool[1](*args, **kwargs)
        if args and (tool := self.known.get(id(args[0]))) is not None:
            return tool[1](*args[1:], **kwargs)
        return self.recoded.original(*args, **kwargs)  # the method of another object


def _from_within(name: str, function: FunctionType, owner: object | None, pairs: bool) -> Callable[[], None]:
    """Hold a function, for all or for calls on this object only; gives what lets go of it."""
    key = None if owner is None else id(owner)
    with _lock:
        tools = _held.get(function) or _Tools(function)
        known = tools.known.get(key)
        if known is not None and known[0] != name:
            raise Misuse(f"{function.__qualname__} is the tool {known[0]!r} already and cannot be {name!r} as well")
        if known is None:
            original: Function = tools.recoded.original
            bound = original if owner is None else MethodType(original, owner)
            tools.known[key] = (name, _crossing(name, bound, pairs))
        if tools.count == 0:
            tools.recoded.put_in()
            _held[function] = tools
        tools.count += 1

    def release() -> None:
        with _lock:
            tools.count -= 1
            if tools.count == 0:
                tools.recoded.put_back()
                del _held[function]

    return release


def _crossing(name: str, function: Function, pairs: bool) -> Function:
    """The function, its calls crossing as the tool's."""
    parameters = Parameters(function)
    code = getattr(function, "__code__", None)  # of a method, its function's

    @functools.wraps(function)
    def blocking(*args: Any, **kwargs: Any) -> Any:
        crossing = _outer(name, function, code)
        if crossing is None:
            return function(*args, **kwargs)
        at = _Attempt(name, function, parameters, (args, kwargs), crossing, pairs)
        sleep = _patience(crossing, at.call.lane).sleep
        try:
            reply = drive(crossing.pipeline(at.call), at.send, sleep)
            body = b"".join(pump(reply, sleep))
        except CallFailed as failed:
            raise _spelt(name, failed) from failed
        return at.outcome(reply, body)

    @functools.wraps(function)
    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        crossing = _outer(name, function, code)
        if crossing is None:
            return await function(*args, **kwargs)
        at = _Attempt(name, function, parameters, (args, kwargs), crossing, pairs)
        asleep = Patience(crossing.clock, known=False).asleep
        try:
            reply = await adrive(crossing.pipeline(at.call), at.asend, asleep)
            body = b"".join([chunk async for chunk in apump(reply, asleep)])
        except CallFailed as failed:
            raise _spelt(name, failed) from failed
        return at.outcome(reply, body)

    if inspect.iscoroutinefunction(function):
        return awaiting
    if not inspect.iscoroutinefunction(inspect.unwrap(function)):
        return blocking

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        """A decorator that is not async itself around a function that is. In an event loop, its caller must await."""
        return (awaiting if asyncio._get_running_loop() is not None else blocking)(*args, **kwargs)

    return either


class _Attempt:
    """One call of a tool: what is asked, what came of asking, and what the caller gets."""

    __slots__ = ("_function", "_given", "_name", "_pairs", "_parameters", "_said", "call")

    def __init__(
        self,
        name: str,
        function: Function,
        parameters: Parameters,
        given: tuple[tuple[Any, ...], dict[str, Any]],
        crossing: Crossing,
        pairs: bool,
    ) -> None:
        self._name, self._function, self._parameters, self._given, self._pairs = (
            name,
            function,
            parameters,
            given,
            pairs,
        )
        self._said: list[tuple[Reply, Any, Exception | None]] = []
        self.call = Call(
            "CALL",
            f"python://{quote(name, safe='')}",
            (("content-type", "application/json"),),
            parameters.write(*given),
            kind="tool",
            name=name,
            lane=crossing.lane("function"),
        )

    def send(self, asked: Call) -> Reply:
        args, kwargs = self._arguments(asked)
        token = _inside.set({**_inside.get(), self._name: self._function})
        try:
            return self._returned(self._function(*args, **kwargs))
        except FlakestormError:  # ours, from a call that the tool made: not for the agent to handle
            raise
        except Exception as error:
            return self._raised(error)
        finally:
            _inside.reset(token)

    async def asend(self, asked: Call) -> Reply:
        args, kwargs = self._arguments(asked)
        token = _inside.set({**_inside.get(), self._name: self._function})
        try:
            value: Awaitable[Any] = self._function(*args, **kwargs)
            return self._returned(await value)
        except FlakestormError:
            raise
        except Exception as error:
            return self._raised(error)
        finally:
            _inside.reset(token)

    def outcome(self, reply: Reply, body: bytes) -> Any:
        """What the caller gets: the very value or exception where nothing was changed."""
        for said, value, error in reversed(self._said):
            if (said.status, said.body) == (reply.status, body):
                if error is not None:
                    raise error
                return value
        if reply.status >= 400:
            raise error_of(reply, body)
        was = self._said[-1][1] if self._said else None
        if not self._pairs:
            return value_of(reply, body, was)
        said, rest = cast("tuple[Any, Any]", was) if _is_pair(was) else (None, None)
        return value_of(reply, body, said), rest

    def _arguments(self, asked: Call) -> tuple[Sequence[Any], Mapping[str, Any]]:
        if asked.body == self.call.body:
            return self._given
        return self._parameters.changed(*self._given, self.call.body, asked.body)

    def _returned(self, value: Any) -> Reply:
        reply = returned(value[0] if self._pairs and _is_pair(value) else value)
        self._said.append((reply, value, None))
        return reply

    def _raised(self, error: Exception) -> Reply:
        reply = raised(error)
        self._said.append((reply, None, error))
        return reply


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _outer(name: str, function: Function, code: CodeType | None) -> Crossing | None:
    """The line this call crosses on; None where there is none, and for what a tool calls of itself."""
    crossing = current()
    if crossing is None:
        return None
    inside = _inside.get().get(name)
    if inside is not None and inside is not function:
        return None
    if inside is not None:
        frame: FrameType | None = sys._getframe(2)
        for _ in range(3):  # the dispatching, the code put in, and who called that
            if frame is None:
                break
            if frame.f_code is code:
                return None
            frame = frame.f_back
    return crossing


def _patience(crossing: Crossing, lane: str) -> Patience:
    """Of who called a blocking function. An agent's first thread just waits; who waits for another one, and for how
    long, is known only where that is an event loop."""
    timers = timers_on(crossing.loop, crossing, blocking=True)
    return Patience(crossing.clock, known=crossing.loop is None and lane == "1", timers=timers)


def _spelt(name: str, failed: CallFailed) -> Exception:
    """A call that broke, as functions that reach for the network say it."""
    words = f"{name}: {failed.detail}" if failed.detail else name
    kinds = {"timeout": TimeoutError, "reset": ConnectionResetError, "refused": ConnectionRefusedError}
    return kinds[failed.how](words)
