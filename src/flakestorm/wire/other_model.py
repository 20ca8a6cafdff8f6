"""The same model request, to another model of the same provider."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote

from flakestorm.core.call import Call
from flakestorm.errors import Misuse
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
    document = parse(call.body)
    names = document is not None and "model" in document
    if url == call.url and not names:
        raise Misuse(f"the call to {call.url} names no model, so it cannot ask {model!r}")
    body = with_members(call.body, {(): {"model": model}}) if names else call.body
    return replace(call, url=url, body=body)
