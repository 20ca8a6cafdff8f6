"""The same model request, to another model of the same provider."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote

from flakestorm.core.call import Call, without_headers
from flakestorm.errors import Misuse
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.shape import parse
from flakestorm.wire.splice import with_members

__all__ = ["with_model"]

_PLACES = tuple(
    re.compile(rf"(?<=/{place}/)[^/:?]+") for place in ("models", "tunedModels", "endpoints", "deployments")
)
_BEDROCK = re.compile(r"(?<=/model/)[^/?]+")


def with_model(call: Call, model: str) -> Call:
    """The call, asking this model; every other byte of it stays as it is.

    Args:
        call: a model call, whose body or path names a model.
        model: its name, as the provider spells it.

    Raises:
        Misuse: the call names no model that could be replaced.
    """
    address, mark, query = call.url.partition("?")
    for place in (*_PLACES, _BEDROCK):
        address = place.sub(quote(model, safe="" if place is _BEDROCK else "@"), address)
    url = address + mark + query
    body = decode_body(call.body, call.headers)
    document = parse(body)
    names = document is not None and "model" in document
    if url == call.url and not names:
        raise Misuse(f"the call to {call.url} names no model, so it cannot ask {model!r}")
    if not names:
        return replace(call, url=url)
    headers = call.headers if body is call.body else without_headers(call.headers, "content-encoding")
    return replace(call, url=url, headers=headers, body=with_members(body, {(): {"model": model}}))
