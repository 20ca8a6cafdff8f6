"""Header fields as they cross the gateway: in the order and spelling they came in, without those of one connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from flakestorm.core.call import Headers

__all__ = ["HOP_BY_HOP", "end_to_end", "text_of"]

HOP_BY_HOP = frozenset(
    (
        "connection",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Header fields that concern one connection only and so never cross the gateway."""

_SHORT = 512  # bytes of a name that are worth keeping in mind
_NAMES = 1024  # how many names of fields are kept in mind

_Use = tuple[str, Literal["kept", "host", "connection", "dropped"]]
_uses: dict[bytes, _Use] = {}


def end_to_end(raw: Sequence[tuple[bytes, bytes]], *, host: str | None = None) -> Headers:
    """Header fields as text, in wire order and spelling, without those that concern one connection only.

    Args:
        raw: as they came over the wire.
        host: what Host is to say; None leaves it as it is.
    """
    kept: list[tuple[str, str]] = []
    named: list[str] = []  # fields that Connection names, before it or after
    for raw_name, raw_value in raw:
        name, use = _uses.get(raw_name) or _use_of(raw_name)
        try:
            value = raw_value.decode()
        except UnicodeDecodeError:
            value = raw_value.decode("latin-1")
        if use == "kept":
            kept.append((name, value))
        elif use == "host":
            kept.append((name, value if host is None else host))
        elif use == "connection":
            named += value.lower().split(",")
    drop = {word.strip() for word in named} - {"close", "keep-alive"}
    return tuple(field for field in kept if field[0].lower() not in drop) if drop else tuple(kept)


def _use_of(raw: bytes) -> _Use:
    """A field's name as text, and what becomes of the field; names come again and again."""
    name = text_of(raw)
    low = name.lower()
    use: _Use = (name, "kept")
    if low in ("host", "connection"):
        use = (name, "host" if low == "host" else "connection")
    elif low in HOP_BY_HOP or low.startswith("x-flakestorm-"):
        use = (name, "dropped")
    if len(_uses) < _NAMES and len(raw) <= _SHORT:
        _uses[raw] = use
    return use


def text_of(raw: bytes) -> str:
    """Bytes of a head as text: UTF-8, or else Latin-1."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
