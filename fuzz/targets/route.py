"""Request lines that reach the gateway: they lead somewhere or get lost, and never to the gateway itself."""

from __future__ import annotations

from flakestorm.boundary.route import Lost, locate, within
from fuzz.material import Bytes

__all__ = ["check"]

_PARTS = ("/", "r", "/r/T", "/p/", "/u/", "/m/", "http", "https", "://", "127.0.0.1:9", "localhost:9", "x", "?", "#",
          "%2F", "%00", "\r\n", "@", ":", "[::1]", "..", "x", "//", "http://", "%0d%0a", "\\")  # fmt: skip
OWN = frozenset(("127.0.0.1:9", "localhost:9"))


def check(data: bytes) -> None:
    source = Bytes(data)
    method = ("GET", "POST", "CONNECT")[source.below(3)]
    if source.below(2):
        target = source.rest().decode("latin-1")
    else:
        target = "".join(_PARTS[source.below(len(_PARTS))] for _ in range(source.below(16)))
    for read in (
        lambda: locate(method, target, "Basic eDpU", OWN),
        lambda: within("T", "https", "api.example:443", method, target),
    ):
        try:
            route = read()
        except Lost as lost:
            assert 400 <= lost.status < 600
            continue
        if route.way in ("shim", "proxy"):
            authority = route.url.partition("://")[2].partition("/")[0].lower()
            assert authority not in OWN
            assert route.url.startswith(("http://", "https://"))
