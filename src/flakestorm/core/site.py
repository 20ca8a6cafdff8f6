"""Sites: the stable address of a call within one run.

A site is written `kind/name#occurrence`, for example `tool/search#2` or `llm/gpt-4o#1`: the second call to the tool
`search`, the first to the model `gpt-4o`. Occurrences count from 1, in order of arrival, per run and per (kind, name).
An SDK's own retry is a call like any other and so has an occurrence of its own.

Names come from strangers (model names, tool names, host names), so `Site.parse(str(site)) == site` holds for every
name: the characters the one-line forms need for themselves are percent-encoded.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, cast, get_args
from urllib.parse import unquote

from flakestorm.core.regex import later

__all__ = ["KINDS", "Kind", "Site", "Sites"]

Kind = Literal["agent", "llm", "tool", "mcp", "http", "draw"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_SITE = later(r"(?P<kind>[a-z]+)/(?P<name>[^#=\s]+)#(?P<occurrence>[1-9]\d*)")
# '#' ends the name, '=' starts the fault in SITE=FAULT, ',' separates faults, '%' is the escape itself.
# Control characters and those that reorder text would let a name rewrite the terminal it is shown on.
_UNSAFE = later(r"[#=,%\s\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@lru_cache(maxsize=4096)  # a run has few names, and spells them often
def _escape(name: str) -> str:
    return _UNSAFE.sub(lambda m: "".join(f"%{b:02X}" for b in m[0].encode("utf-8", "surrogatepass")), name)


class Site(NamedTuple):
    """The address of one call: its kind, its name, and which one it was (from 1).

    A tuple, because one is made for every call and looked up by every stage: hashing it costs no Python.
    """

    kind: Kind
    name: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.kind}/{_escape(self.name)}#{self.occurrence}"

    @property
    def exact(self) -> str:
        """As it is written in front of a fault, where `*` would make a glob of a name that happens to hold it."""
        return str(self).replace("*", "%2A")

    @classmethod
    def parse(cls, text: str) -> Site:
        """Read `kind/name#occurrence`.

        Raises:
            ValueError: the text is not a site; the message shows the form and an example.
        """
        found = _SITE.fullmatch(text.strip())
        if found is None or found["kind"] not in KINDS:
            raise ValueError(
                f"{text!r} is not a site; write kind/name#occurrence, for example tool/search#1 "
                f"(kinds: {', '.join(KINDS)})"
            )
        return cls(cast(Kind, found["kind"]), unquote(found["name"]), int(found["occurrence"]))


_new = tuple.__new__


class Sites:
    """Hands out the sites of one run.

    The one piece of state is a counter per (kind, name); `dict.get` and assignment are single steps under the
    interpreter lock, but two threads may still interleave between them, so callers that share a run between threads
    hold their own lock (the boundary session does).
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[Kind, str], int] = {}

    def next(self, kind: Kind, name: str) -> Site:
        """The site of a call that has just arrived."""
        n = self._seen[kind, name] = self._seen.get((kind, name), 0) + 1
        return _new(Site, (kind, name, n))  # without the detour by way of the class, which is Python

    def seen(self, *kinds: Kind) -> tuple[str, ...]:
        """The names seen so far in these kinds (all kinds when none is given), in order of first appearance."""
        return tuple(dict.fromkeys(name for kind, name in self._seen if not kinds or kind in kinds))

    def count(self, kind: Kind) -> int:
        """How many calls of this kind have arrived."""
        return sum(n for (k, _), n in self._seen.items() if k == kind)
