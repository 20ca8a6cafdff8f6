"""`urllib3`, and with it requests and botocore.

Its connections derive from `http.client`'s but connect in their own way; and only `_make_request` knows the read
time-out, which is not the one the connection has while the request is written.
"""

from __future__ import annotations

import functools

from .gate import Gate
from .on_http_client import guard_connect

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["apply"]


def apply(module: Any, gate: Gate) -> None:
    pool = module.connectionpool.HTTPConnectionPool
    original = pool._make_request

    @functools.wraps(original)
    def make_request(self: Any, conn: Any, *args: Any, **kwargs: Any) -> Any:
        conn.__dict__["_flakestorm_read_s"] = getattr(kwargs.get("timeout"), "read_timeout", None)
        return original(self, conn, *args, **kwargs)

    guard_connect(module.connection.HTTPConnection, gate)
    if module.connection.HTTPSConnection is not module.connection.HTTPConnection:
        guard_connect(module.connection.HTTPSConnection, gate)
    pool._make_request = make_request
