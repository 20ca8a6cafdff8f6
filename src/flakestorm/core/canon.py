"""Canonical JSON: one spelling for every document that means the same.

As in RFC 8785, members are sorted by their names' UTF-16 code units, arrays stay as they are, and there is no white
space. Numbers differ from it on purpose: they are normalised as decimals and never pass through binary floating point,
where 18446744073709551616 and 18446744073709551617 would become one number.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

import msgspec

__all__ = ["Leaf", "canonical", "number", "parse", "spell"]

Leaf = Callable[[str, str | int | Decimal], str | None]
"""Given a member's name and a string or number below it, its spelling (a JSON value), or None for the usual one."""

_POSITIONAL = 21  # as in ECMAScript: numbers with more digits before the point are written with an exponent
_decoder = msgspec.json.Decoder(float_hook=Decimal)


def parse(data: bytes | bytearray | memoryview | msgspec.Raw) -> Any:
    """The value of a JSON document, numbers exact.

    Raises:
        ValueError: it is not JSON, nested too deeply, or has a number with an exponent of nineteen digits or more.
    """
    try:
        return _decoder.decode(data)
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None
    except InvalidOperation:
        raise ValueError("a number of the document has too large an exponent") from None


def canonical(data: bytes) -> bytes:
    """The canonical form of a JSON document.

    Raises:
        ValueError: it is not JSON.
    """
    return spell(parse(data)).encode("utf-8", "surrogatepass")


def spell(value: Any, leaf: Leaf = lambda _name, _value: None, name: str = "") -> str:
    """The canonical spelling of a value that `parse` gave.

    Args:
        value: the value.
        leaf: spells strings and numbers; see `Leaf`.
        name: of the member that the value is.

    Raises:
        ValueError: it is nested too deeply.
    """
    out: list[str] = []
    try:
        _write(value, name, leaf, out.append)
    except RecursionError:
        raise ValueError("the document is nested too deeply") from None
    return "".join(out)


def number(value: int | Decimal) -> str:
    """The one spelling of a number: 1, 1.0, 10e-1 and 0.1e1 are `1`."""
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("JSON has no such number")
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    if not short:
        return "0"
    exponent += len(text) - len(short)
    minus, point = "-" if sign else "", len(short) + exponent
    if exponent >= 0 and point <= _POSITIONAL:
        return f"{minus}{short}{'0' * exponent}"
    if exponent < 0 < point:
        return f"{minus}{short[:point]}.{short[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{short}"
    return f"{minus}{short}e{exponent}"


def _write(value: Any, name: str, leaf: Leaf, put: Callable[[str], None]) -> None:
    if isinstance(value, dict):
        put("{")
        for at, key in enumerate(_sorted(value)):
            put(f"{',' if at else ''}{encode_basestring(key)}:")
            _write(value[key], key, leaf, put)
        put("}")
    elif isinstance(value, list):
        put("[")
        for at, item in enumerate(value):
            if at:
                put(",")
            _write(item, name, leaf, put)
        put("]")
    elif value is None or isinstance(value, bool):
        put({None: "null", True: "true", False: "false"}[value])
    else:
        said = leaf(name, value)
        if said is None:
            said = encode_basestring(value) if isinstance(value, str) else number(value)
        put(said)


def _sorted(value: dict[str, Any]) -> list[str]:
    if all(map(str.isascii, value)):
        return sorted(value)
    return sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
