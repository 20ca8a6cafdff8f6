"""Random draws: `os.urandom`, `random`, `secrets`, `uuid`. The key material of TLS is not drawn from here."""

from __future__ import annotations

import functools
import operator
import sys

from .lanes import here
from .replacing import replace

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["on_os", "on_random", "on_uuid"]

_FUNCTIONS = (
    "random uniform triangular randint choice randrange sample shuffle choices normalvariate lognormvariate "
    "expovariate vonmisesvariate gammavariate gauss betavariate binomialvariate paretovariate weibullvariate "
    "getstate getrandbits randbytes"
)

_SPARED = ("tempfile",)  # names of temporary files must differ between processes, and between runs of one agent

_SINCE_1582 = 0x01B21DD213814000  # of UUID time, in 100 ns, until 1970


def on_os(module: Any) -> None:
    """`os.urandom` and `os.getrandom`."""
    replace(module, "urandom", _bytes)
    replace(module, "getrandom", _bytes)


def _bytes(original: Any) -> Any:
    @functools.wraps(original)
    def draw(size: Any, *args: Any, **kwargs: Any) -> bytes:
        lane, size = here(), operator.index(size)
        if lane is None or size < 0:
            return original(size, *args, **kwargs)  # type: ignore[no-any-return]
        return lane.take("urandom", size)

    return draw


def on_random(module: Any) -> None:
    """The functions of `random`, generators made without a seed, and by what they read `SystemRandom` and `secrets`."""
    for name in _FUNCTIONS.split():
        replace(module, name, functools.partial(_drawing, module, name))
    replace(module, "seed", functools.partial(_setting, module, "seed"))
    replace(module, "setstate", functools.partial(_setting, module, "setstate"))
    replace(module.Random, "seed", _seeding)
    if not hasattr(module._urandom, "__wrapped__"):  # taken over from `os` before that was wrapped
        replace(module, "_urandom", _bytes)


def _drawing(module: Any, name: str, original: Any) -> Any:
    @functools.wraps(original)
    def draw(*args: Any, **kwargs: Any) -> Any:
        lane = here()
        if lane is None:
            return original(*args, **kwargs)
        return getattr(lane.random(module.Random), name)(*args, **kwargs)

    return draw


def _setting(module: Any, name: str, original: Any) -> Any:
    """Of `seed` and `setstate`, after which the agent's one stream is its own again."""

    @functools.wraps(original)
    def set_(*args: Any, **kwargs: Any) -> Any:
        lane = here()
        if lane is None:
            return original(*args, **kwargs)
        if name == "seed" and (args[0] if args else kwargs.get("a")) is None:
            lane.run.seeded = None
            return None
        own = module.Random(0)
        getattr(own, name)(*args, **kwargs)
        lane.run.seeded = own
        return None

    return set_


def _seeding(original: Any) -> Any:
    @functools.wraps(original)
    def seed(self: Any, a: Any = None, version: int = 2) -> None:
        if a is None:
            lane = here()
            # Whoever makes a generator is two frames up: between us stands Random.__init__.
            if lane is not None and sys._getframe(min(2, _depth())).f_globals.get("__name__") not in _SPARED:
                a = lane.number("generator", 256)
        original(self, a, version)

    return seed


def _depth() -> int:
    """How many frames the caller of the caller has below it, as far as two."""
    frame = sys._getframe(1)
    return 1 if frame.f_back is None or frame.f_back.f_back is None else 2


def on_uuid(module: Any) -> None:
    """The kinds of `uuid` that are drawn."""
    make = module.UUID

    def uuid4(original: Any) -> Any:
        @functools.wraps(original)
        def uuid4() -> Any:
            lane = here()
            return original() if lane is None else make(bytes=lane.take("uuid", 16), version=4)

        return uuid4

    def by_time(version: int) -> Any:
        def wrap(original: Any) -> Any:
            @functools.wraps(original)
            def uuid(node: Any = None, clock_seq: Any = None) -> Any:
                lane = here()
                if lane is None:
                    return original(node, clock_seq)
                stamp = lane.now_us() * 10 + _SINCE_1582 + lane.turn("uuid1")
                seq = lane.number("uuid", 14) if clock_seq is None else clock_seq & 0x3FFF
                node = lane.number("uuid", 48) | 1 << 40 if node is None else node
                return make(int=_laid_out(stamp, version) | 1 << 63 | seq << 48 | node)

            return uuid

        return wrap

    def uuid7(original: Any) -> Any:
        @functools.wraps(original)
        def uuid7() -> Any:
            lane = here()
            if lane is None:
                return original()
            turn = lane.turn("uuid7")  # in order within one moment
            high = lane.now_us() // 1000 << 16 | 7 << 12 | turn >> 30 & 0xFFF
            return make(int=high << 64 | 1 << 63 | (turn & 0x3FFFFFFF) << 32 | lane.number("uuid", 32))

        return uuid7

    replace(module, "uuid1", by_time(1))
    replace(module, "uuid4", uuid4)
    replace(module, "uuid6", by_time(6))
    replace(module, "uuid7", uuid7)


def _laid_out(stamp: int, version: int) -> int:
    """The upper half of a UUID of version 1 or 6, in its place."""
    if version == 6:
        return (stamp >> 12 << 16 | 6 << 12 | stamp & 0xFFF) << 64
    return ((stamp & 0xFFFFFFFF) << 32 | (stamp >> 32 & 0xFFFF) << 16 | 1 << 12 | stamp >> 48 & 0xFFF) << 64
