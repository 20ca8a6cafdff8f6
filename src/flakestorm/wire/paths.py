"""What the address of a call says: where it goes, and often to which model."""

from __future__ import annotations

import re
from urllib.parse import unquote

from flakestorm.core.call import Call
from flakestorm.wire.shape import outline

__all__ = ["model_in_path", "path_of"]


def path_of(call: Call) -> str:
    """The URL of a call without its query, and without a slash at the end."""
    return call.url.partition("?")[0].rstrip("/")


def model_in_path(call: Call, path: re.Pattern[str], member: str, *kinds: type) -> str | None:
    """The model that a POST names in its path, None where that is another path, or no request is in the body.

    Args:
        call: any call.
        path: found in the paths of this protocol; its first group is the model.
        member: what each request has.
        kinds: of which of these types it is.
    """
    asked = path.search(call.url.partition("?")[0]) if call.method == "POST" else None
    if asked is None or not isinstance((outline(call.body) or {}).get(member), kinds):
        return None
    return unquote(asked[1])
