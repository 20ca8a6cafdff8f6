"""`urllib.request`: its calls go through `http.client`; only the exception for a refused connection is its own."""

from __future__ import annotations

import functools

from .gate import Gate
from .on_http_client import Refused

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["apply"]


def apply(module: Any, _gate: Gate) -> None:
    handler = module.AbstractHTTPHandler
    original = handler.do_open

    @functools.wraps(original)
    def do_open(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except Refused as error:
            raise module.URLError(error) from error

    handler.do_open = do_open
