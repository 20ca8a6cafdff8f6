"""Holding the boundary in process: the seams of the HTTP clients that the agent itself uses.

`install()` wraps the transports of httpx, httpx2, aiohttp and urllib3 (and so of requests, botocore and the SDKs built
on them), the stdio transport of MCP clients, and where threads get their work, once per process. A call made while a
`Crossing` is active in the current context then flows through its pipeline; any other call passes untouched, at the
price of one look at a context variable.

Libraries are never imported for this: one that is already imported is wrapped at once, another when the agent imports
it. `uninstall()` puts everything back.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from flakestorm.boundary.seams import threads
from flakestorm.boundary.seams.imports import ImportWatch
from flakestorm.boundary.seams.patches import Counted, Patch

__all__ = ["LIBRARIES", "held", "install", "uninstall"]

LIBRARIES = {
    "httpx": "httpx_client",
    "httpx2": "httpx_client",
    "aiohttp": "aiohttp_client",
    "urllib3": "urllib3_client",
    "mcp.client.stdio": "mcp_client",
}
"""Which module of `flakestorm.boundary.seams` serves which library."""

_SEAMS = LIBRARIES | {"anyio._backends._asyncio": "anyio_threads"}
"""And of what brings no calls in, but threads for them."""

_applied: list[Patch] = []
_served: set[str] = set()


def _put_in() -> None:
    _apply(threads.patches())
    _watch.start(name for name in _SEAMS if name not in sys.modules)


def _serve_all() -> None:
    for library in [sys.modules[name] for name in _SEAMS if name in sys.modules]:
        _serve(library)


def _serve(library: ModuleType) -> None:
    """Wrap a library that has just been imported, or was before."""
    name = library.__name__
    seam = importlib.import_module(f"flakestorm.boundary.seams.{_SEAMS[name]}")  # not under the lock: imports wait
    with _seams.lock:
        if _seams.wanted and name not in _served:
            _served.add(name)
            _apply(seam.patches(library))


def _apply(patches: list[Patch]) -> None:
    for patch in patches:
        patch.apply()
        _applied.append(patch)


def _take_out() -> None:
    _watch.stop()
    while _applied:
        _applied.pop().revert()
    _served.clear()


_watch = ImportWatch(_serve)
_seams = Counted(_put_in, _take_out, _serve_all)

install, uninstall, held = _seams.install, _seams.uninstall, _seams.held
"""The seams are in until the last who wanted them is gone.

Raises:
    Misuse: an imported library is too old to be held; the message names the version needed.
"""
