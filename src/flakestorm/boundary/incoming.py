"""A request of an agent's, as it reached the gateway, read as a `Call`, and how long its client waits."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import cast

from aiohttp import web

from flakestorm.boundary.asked import Asked
from flakestorm.boundary.door import Door
from flakestorm.boundary.fields import end_to_end
from flakestorm.boundary.passage import Passage
from flakestorm.boundary.patience import Patience
from flakestorm.boundary.upload import Upload, arrived
from flakestorm.core.call import Call
from flakestorm.core.clock import Clock

__all__ = ["LANE", "PATIENCE", "call_of", "patience_of", "peer_of"]

LANE = "x-flakestorm-lane"
"""Request header, set by the shim: which of the agent's concurrent threads makes the call."""

PATIENCE = "x-flakestorm-patience-ms"
"""Request header, set by the shim: how long the agent's client waits for bytes."""

_SAID = (
    (PATIENCE, 0.001),
    ("x-stainless-read-timeout", 1.0),  # SDKs of OpenAI and Anthropic in Python
    ("x-stainless-timeout", 1.0),  # the same in other languages
    ("x-server-timeout", 1.0),  # Google's
)
"""Request headers in which clients say how long they wait, and what makes seconds of them."""

_SAYING = frozenset(name for name, _ in _SAID)
_SHORT = 512  # characters of a URL that are worth keeping in mind


async def call_of(request: Asked, url: str, passage: Passage, patience: Patience, way: str) -> Call:
    """The request as a call; its body is read here unless it is being produced while it is sent.

    Args:
        request: as it came.
        url: where it is to go.
        passage: whose it is.
        patience: its client's; starts anew when the body is here.
        way: which way it came in.

    Raises:
        Lost: its body cannot be taken.
    """
    body, upload = b"", None
    if request.body_exists:
        headers = request.headers
        chunked = headers.get("transfer-encoding")
        if (
            chunked is not None
            and "chunked" in chunked.lower()
            and "json" not in headers.get("content-type", "").lower()
        ):
            upload = Upload(cast(web.BaseRequest, request))  # what is chunked is never plain
        else:
            here = arrived(request)
            body = await Upload(cast(web.BaseRequest, request)).whole() if here is None else here
            patience.restart()
    return Call(
        method=request.method,
        url=url,
        headers=end_to_end(
            request.raw_headers, host=_authority(url) if len(url) <= _SHORT else _authority.__wrapped__(url)
        ),
        body=body,
        upload=upload,
        lane=passage.lane(peer_of(request), way, request.headers.get(LANE)),
        patience_s=patience.read_s,
    )


def patience_of(request: Asked, clock: Clock) -> Patience:
    """The client's, as far as it says how long it waits."""
    headers = request.headers
    if type(headers) is dict and _SAYING.isdisjoint(headers):  # as nearly always; its names are in lower case
        return Patience(clock, known=False)
    for name, scale in _SAID:
        said = headers.get(name)
        if said is None:
            continue
        try:
            read_s = float(said) * scale
        except ValueError:
            continue
        if math.isfinite(read_s) and read_s > 0:
            patience = Patience(clock, read_s)
            if name != PATIENCE:  # the shim alone knows how to say a time-out
                patience.fall_silent()
            return patience
    return Patience(clock, known=False)


def peer_of(request: Asked) -> object:
    """What stays the same for one connection: its client's address."""
    door = request.protocol
    if isinstance(door, Door):
        return door.peer
    return request.transport.get_extra_info("peername") if request.transport is not None else None


@lru_cache(maxsize=1024)  # an agent calls few addresses, each of them often
def _authority(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition("?")[0]
