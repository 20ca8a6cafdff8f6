"""Holding the boundary in process: the seams of the HTTP clients that the agent itself uses.

`install()` wraps the transports of httpx, httpx2, aiohttp and urllib3 (and so of requests, botocore and the SDKs built
on them), and the stdio transport of MCP clients, once per process. A call made while a `Crossing` is active in the
current context then flows through its pipeline; any other call passes untouched, at the price of one look at a context
variable.

Libraries are never imported for this: one that is already imported is wrapped at once, another when the agent imports
it. `uninstall()` puts everything back.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from flakestorm.boundary.seams import threads
from flakestorm.boundary.seams.imports import ImportWatch
from flakestorm.boundary.seams.patches import Patch

__all__ = ["LIBRARIES", "held", "install", "uninstall"]

LIBRARIES = {
    "httpx": "httpx_client",
    "httpx2": "httpx_client",
    "aiohttp": "aiohttp_client",
    "urllib3": "urllib3_client",
    "mcp.client.stdio": "mcp_client",
}
"""Which module of `flakestorm.boundary.seams` serves which library."""

_lock = threading.Lock()
_installs = 0
_applied: list[Patch] = []
_served: set[str] = set()


def install() -> None:
    """Put the seams in. Counted: the last `uninstall` takes them out.

    Raises:
        Misuse: an imported library is too old to be held; the message names the version needed.
    """
    global _installs
    with _lock:
        _installs += 1
        if _installs > 1:
            return
        _apply(threads.patches())
        _watch.start(name for name in LIBRARIES if name not in sys.modules)
    try:
        for library in [sys.modules[name] for name in LIBRARIES if name in sys.modules]:
            _serve(library)
    except BaseException:
        uninstall()
        raise


def uninstall() -> None:
    """Take the seams out again, if this was the last one who wanted them. Without an `install` it does nothing."""
    global _installs
    with _lock:
        if _installs == 0:
            return
        _installs -= 1
        if _installs == 0:
            _remove()


@contextmanager
def held() -> Iterator[None]:
    """While entered, the seams are in."""
    install()
    try:
        yield
    finally:
        uninstall()


def _serve(library: ModuleType) -> None:
    """Wrap a library that has just been imported, or was before."""
    name = library.__name__
    seam = importlib.import_module(f"flakestorm.boundary.seams.{LIBRARIES[name]}")  # not under the lock: imports wait
    with _lock:
        if _installs and name not in _served:
            _served.add(name)
            _apply(seam.patches(library))


def _apply(patches: list[Patch]) -> None:
    for patch in patches:
        patch.apply()
        _applied.append(patch)


def _remove() -> None:
    _watch.stop()
    while _applied:
        _applied.pop().revert()
    _served.clear()


_watch = ImportWatch(_serve)
