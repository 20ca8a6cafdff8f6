"""Whether a text may hold a secret at all: one pass over it, which tells most texts to hold none.

The pass is RE2's, in linear time: about a microsecond for a short text, 15 for 10 KB. Importing it takes as long as
looking for each needle in some hundred kilobytes, so that is how the first few are searched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from flakestorm.core.regex import later
from flakestorm.tape.naming import NEEDLES
from flakestorm.tape.rarer import PARTS, RARER
from flakestorm.tape.shapes import SHAPES

__all__ = ["suspicious"]

_SOURCE = b"|".join(
    (*(re.escape(needle) for _, needle, _, _ in SHAPES), *map(re.escape, (*NEEDLES, *RARER)), b'://[^/\\s"@]*@')
)
_NEEDLES = (*(needle for _, needle, _, _ in SHAPES), *NEEDLES)
_USERINFO = later(rb"://[^/\s\"@]*@")
_FEW = 64 << 10
_SHORT, _MANY = 256, 4096  # texts that are remembered: how long at most, and how many
_FOREVER = 1 << 62


class _Search:
    """Searches by needle until it is worth importing RE2. Who asks often may ask `match`, at half the price."""

    def __init__(self) -> None:
        self._left = _FEW
        self._innocent: set[bytes] = set()
        self.match: Callable[[bytes], Any] = self._each

    def __call__(self, text: bytes) -> bool:
        if text in self._innocent:
            return False
        found = bool(self.match(text))
        if not found and len(text) <= _SHORT:  # the runs of a command have much in common: scenarios, reasons, versions
            if len(self._innocent) >= _MANY:
                self._innocent.clear()
            self._innocent.add(text)
        return found

    def _each(self, text: bytes) -> Any:
        self._left -= len(text)
        if self._left < 0:
            self._left = _FOREVER  # while importing, garbage may be collected, and a stream among it be recorded
            self.match = _search()
            return self.match(text)
        lower = text.lower()
        return (
            any(map(lower.__contains__, _NEEDLES))
            or any(part in lower and any(map(lower.__contains__, needles)) for part, needles in PARTS)
            or _USERINFO.search(text)
        )


suspicious = _Search()
"""Whether a text holds a needle of `shapes`, `naming` or `rarer`, or what may be a URL with a password."""


def _search() -> Callable[[bytes], Any]:
    try:
        import re2
    except ImportError:
        return re.compile(_SOURCE, re.IGNORECASE).search
    options = re2.Options()
    options.never_capture, options.case_sensitive, options.log_errors = True, False, False
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    search = re2.Set.SearchSet(options)
    search.Add(_SOURCE)
    search.Compile()
    return search.Match  # type: ignore[no-any-return]
