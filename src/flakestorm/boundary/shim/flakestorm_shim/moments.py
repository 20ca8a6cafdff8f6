"""The time of day: `time` and `datetime`. Clocks that only measure (`monotonic`, `perf_counter`) stay real, for event
loops and time-outs live by them."""

from __future__ import annotations

import functools
import sys

from .lanes import here
from .replacing import replace

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["on_asyncio", "on_datetime", "on_time"]


def on_time(module: Any) -> None:
    """`time`: every way to ask for the moment, and sleeping, which makes it pass."""
    replace(module, "time", _reading(lambda us: us / 1e6))
    replace(module, "time_ns", _reading(lambda us: us * 1000))
    for name in ("localtime", "gmtime", "ctime"):
        replace(module, name, _converting)
    replace(module, "asctime", _formatting(module, 0))
    replace(module, "strftime", _formatting(module, 1))
    realtime = getattr(module, "CLOCK_REALTIME", None)
    replace(module, "clock_gettime", _of_clock(realtime, lambda us: us / 1e6))
    replace(module, "clock_gettime_ns", _of_clock(realtime, lambda us: us * 1000))
    replace(module, "sleep", _sleeping)


def on_datetime(module: Any) -> None:
    """`datetime`: the classes stay what they are."""
    given = vars(module.datetime)["fromtimestamp"]
    utc, datetime_class = module.timezone.utc, module.datetime

    def at(cls: Any, us: int, tz: Any) -> Any:
        return given.__get__(None, cls)(us / 1e6, tz)

    def now(original: Any) -> Any:
        def now(cls: Any, tz: Any = None) -> Any:
            """Return the current date and time; `tz` is a time zone."""
            lane = here()
            return original.__get__(None, cls)(tz) if lane is None else at(cls, lane.now_us(), tz)

        return classmethod(now)

    def utcnow(original: Any) -> Any:
        def utcnow(cls: Any) -> Any:
            """Return the current UTC date and time, without a time zone."""
            lane = here()
            if lane is None:
                return original.__get__(None, cls)()
            if sys.version_info >= (3, 12):
                import warnings

                text = "datetime.datetime.utcnow() is deprecated; use datetime.datetime.now(datetime.UTC)"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
            return at(cls, lane.now_us(), utc).replace(tzinfo=None)

        return classmethod(utcnow)

    def today(original: Any) -> Any:
        def today(cls: Any) -> Any:
            """Return the current date, or for a datetime the current date and time."""
            lane = here()
            if lane is None:
                return original.__get__(None, cls)()
            if issubclass(cls, datetime_class):
                return at(cls, lane.now_us(), None)
            return cls.fromtimestamp(lane.now_us() / 1e6)

        return classmethod(today)

    replace(module.datetime, "now", now)
    replace(module.datetime, "utcnow", utcnow)
    replace(module.date, "today", today)


def on_asyncio(module: Any) -> None:
    """`asyncio.sleep`, in both its places."""

    def sleeping(original: Any) -> Any:
        @functools.wraps(original)
        async def sleep(delay: Any, *args: Any, **kwargs: Any) -> Any:
            lane = here()
            if lane is None or delay <= 0:
                return await original(delay, *args, **kwargs)
            until_us = lane.now_us() - lane.run.epoch_us + int(delay * 1e6)
            result = await original(delay, *args, **kwargs)
            lane.reach(until_us)
            return result

        return sleep

    sleep = sleeping(module.sleep)
    replace(module.tasks, "sleep", lambda _: sleep)
    replace(module, "sleep", lambda _: sleep)


def _reading(form: Callable[[int], Any]) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def read() -> Any:
            lane = here()
            return original() if lane is None else form(lane.now_us())

        return read

    return wrap


def _converting(original: Any) -> Any:
    """Of functions of a moment, which take the current one where none is given."""

    @functools.wraps(original)
    def convert(secs: Any = None) -> Any:
        lane = here() if secs is None else None
        return original(secs) if lane is None else original(lane.now_us() / 1e6)

    return convert


def _formatting(module: Any, words: int) -> Callable[[Any], Any]:
    """Of functions whose last argument is a broken-down time, or the current one; `words` come before it."""

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def form(*args: Any) -> Any:
            if len(args) == words and here() is not None:
                return original(*args, module.localtime())
            return original(*args)

        return form

    return wrap


def _of_clock(realtime: Any, form: Callable[[int], Any]) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def read(clock: Any) -> Any:
            lane = here() if clock == realtime else None
            return original(clock) if lane is None else form(lane.now_us())

        return read

    return wrap


def _sleeping(original: Any) -> Any:
    @functools.wraps(original)
    def sleep(seconds: Any) -> None:
        lane = here()
        if lane is None:
            return original(seconds)  # type: ignore[no-any-return]
        begin_us = lane.now_us() - lane.run.epoch_us
        original(seconds)
        return lane.reach(begin_us + int(seconds * 1e6))

    return sleep
