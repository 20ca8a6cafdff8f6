"""What a run's tape cannot show: connections that nobody could look into, in words for the reader of a report."""

from __future__ import annotations

from collections.abc import Iterable

from flakestorm.errors import MissingExtra
from flakestorm.tape.model import Exchange

__all__ = ["unseen"]

_BROKE = "CallFailed: reset: "


def unseen(exchanges: Iterable[Exchange]) -> tuple[str, ...]:
    """One line for each host that was reached through an opaque tunnel, or whose TLS connection came to nothing.

    Args:
        exchanges: of one run.
    """
    said: dict[str, None] = {}
    for exchange in exchanges:
        if exchange.method == "TLS":
            said[(exchange.reply.error or "").removeprefix(_BROKE)] = None
        elif exchange.method == "CONNECT" and exchange.reply.status == 200:
            scheme, _, host = exchange.url.rstrip("/").partition("://")
            if scheme == "https":
                line = str(MissingExtra(f"{host} was called through a TLS tunnel, and looking into it", "mitm"))
            else:
                line = f"{host} was called through a tunnel, but in neither TLS nor HTTP, so what passed was not seen"
            said[line] = None
    return tuple(said)
