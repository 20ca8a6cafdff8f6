"""Leads a launched Python agent's hard-coded URLs to the gateway.

Each HTTP library is patched at the lowest point that still knows the whole request, when it is imported and not before,
so the library's own redirects, cookies, retries and `response.url` keep seeing the original URL. Calls that go to the
gateway already (base-URL variables, the HTTP proxy) are not redirected again; they only get the headers below.

`x-flakestorm-lane` tells the gateway which of the agent's concurrent threads makes the call (`descent.py`), and
`x-flakestorm-patience-ms` how long the client will wait for bytes. `x-flakestorm-failed` on a reply
says that the call broke, and how; it is turned into the exception the library raises for that.

With FLAKESTORM_DRAWS set, its clock and its random draws are virtual too (`draws.py`).

The agent must never suffer from this: what cannot be patched is left alone, with one line on stderr.
"""

from __future__ import annotations

import os

from . import hooks

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["start"]

_started: list[str] = []

# What `spawning.PATCHES` says, told here so that nothing need be imported until one of them is.
_SPAWNING = (
    "threading", "concurrent.futures.thread", "asyncio.base_events", "asyncio", "uvloop", "anyio._backends._asyncio"
)  # fmt: skip


def start(url: str) -> None:
    """Arrange for every known library to be patched as soon as it is imported.

    Args:
        url: the run's root on the gateway, `http://127.0.0.1:PORT/r/TOKEN`.
    """
    if not _started:
        _started.append(url)
        drawn = os.environ.get("FLAKESTORM_DRAWS")
        if drawn:
            _draw(drawn)
        hooks.watch({name: _spawning(name) for name in _SPAWNING}, "its calls are told apart by their connections")
        hooks.install(url)


def _draw(text: str) -> None:
    try:
        from . import draws

        draws.start(text)
    except Exception as error:
        from .notes import note

        note(f"clock, uuid and random are real: {error!r}")


def _spawning(name: str) -> Callable[[Any], None]:
    def apply(module: Any) -> None:
        from . import descent, spawning

        descent.begin(os.environ.get(descent.VARIABLE))
        spawning.PATCHES[name](module)

    return apply
