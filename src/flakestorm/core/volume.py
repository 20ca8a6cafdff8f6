"""How much a JSON text holds, told before it is read.

Reading makes objects that take up to a hundred times the room of their text (`[[],[],[], ...`). A text from a stranger
that is bounded in bytes only is not bounded in memory.
"""

from __future__ import annotations

import re

from flakestorm.core.regex import later

__all__ = ["holds_more"]

_STRING = later(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def holds_more(data: bytes, values: int) -> bool:
    """Whether there are more than so many values in a JSON text: more texts, or more of the signs before which a value
    stands.

    The texts are counted first, roughly and never too many, so that what is left can be cut out in bounded memory.
    """
    if len(data) <= values:
        return False
    if data.count(b'"') - data.count(b'\\"') > 2 * values:
        return True
    if sum(map(data.count, (b"[", b"{", b",", b":"))) <= values:
        return False
    structure = _STRING.sub(b"", data)
    return sum(map(structure.count, (b"[", b"{", b",", b":"))) > values
