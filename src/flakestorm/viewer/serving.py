"""Serving the viewer on 127.0.0.1, from start to stop."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from flakestorm.errors import Misuse
from flakestorm.viewer.app import make_app
from flakestorm.viewer.guard import Guard

__all__ = ["serving"]

STOPPING_S = 1.0
"""How long answers under way may take to end when the viewer stops."""

_log = logging.getLogger("flakestorm.viewer")


def _ours(record: logging.LogRecord) -> bool:
    """Whether it tells of a defect of the viewer's, and not of a request that is no HTTP, which anybody can send."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_log.addFilter(_ours)


@asynccontextmanager
async def serving(folder: Path, port: int = 0) -> AsyncIterator[str]:
    """While entered, the viewer of this store is served; gives the address to open, with a new token.

    Args:
        folder: the project's `.flakestorm` folder.
        port: on 127.0.0.1; 0 for any that is free.

    Raises:
        Misuse: the port is taken or not allowed.
    """
    try:
        bound = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise Misuse(
            f"port {port} of 127.0.0.1 cannot be used: {error.strerror or error}; choose another --port"
        ) from error
    guard = Guard(secrets.token_urlsafe(24), bound.getsockname()[1])
    runner = web.AppRunner(make_app(folder, guard), access_log=None, logger=_log, shutdown_timeout=STOPPING_S)
    try:
        await runner.setup()
        await web.SockSite(runner, bound).start()
        yield f"http://127.0.0.1:{guard.port}/?token={guard.token}"
    finally:
        await runner.cleanup()
        bound.close()
