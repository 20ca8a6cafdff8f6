"""What the patches need to know about the gateway."""

from __future__ import annotations

import os
from urllib.parse import quote, urlsplit

from . import descent

__all__ = ["FAILED", "LANE", "PATIENCE", "Gate", "lane", "patience"]

FAILED = "x-flakestorm-failed"
LANE = "x-flakestorm-lane"
PATIENCE = "x-flakestorm-patience-ms"


def lane() -> str | None:
    """On which lane the caller makes a call, in the form of the header; None where nobody can tell."""
    return descent.here().name if descent.known() else None


def patience(seconds: object) -> str | None:
    """A client's read time-out in the form of the header; None when it has none."""
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds < 1e9:
        return str(max(1, int(seconds * 1000)))
    return None


class Gate:
    """The run's root on the gateway.

    Args:
        url: `http://127.0.0.1:PORT/r/TOKEN`.
    """

    def __init__(self, url: str) -> None:
        descent.begin(os.environ.get(descent.VARIABLE))
        parts = urlsplit(url)
        self.root = url.rstrip("/")
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or 80
        self.prefix = parts.path.rstrip("/")

    def owns(self, host: object, port: object) -> bool:
        """Whether this is the gateway itself."""
        return port == self.port and host in (self.host, "localhost")

    def path(self, scheme: str, authority: str, target: str) -> str:
        """The path on the gateway of a URL, given in three parts; `target` is its path and query, as they are."""
        return f"{self.prefix}/u/{scheme}/{quote(authority, safe=':')}{target or '/'}"

    def url(self, scheme: str, authority: str, target: str) -> str:
        """As `path`, as an absolute URL."""
        return self.root[: -len(self.prefix)] + self.path(scheme, authority, target)
