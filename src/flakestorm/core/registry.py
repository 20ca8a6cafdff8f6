"""Named things that others may add to: faults, invariants, agents, mutations.

A registry knows the built-in names at once. What stands behind one is imported when it is asked for, and plug-ins
(Python entry points) are looked for only when they must be, and once: scanning the installed distributions costs tens
of milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from flakestorm.errors import Misuse

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Registry", "nearest"]

T = TypeVar("T")

_TELLING = 4  # a beginning that two words share says something from so many letters on


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that the given one is most likely a misspelling of, or None.

    Where none is spelt nearly the same, one that the given word only adds to, or that adds to it, comes first:
    `malformed_response` was meant to be `malformed`, not `malicious_response`.
    """
    import difflib  # for those who misspelt something

    words = list(known)
    longer = [w for w in words if min(len(w), len(word)) >= _TELLING and (word.startswith(w) or w.startswith(word))]
    for some, cutoff in ((words, 0.85), (longer, 0.0), (words, 0.6)):
        if close := difflib.get_close_matches(word, some, n=1, cutoff=cutoff):
            return close[0]
    return None


class Registry(Generic[T]):
    """Names to values of one type.

    Args:
        what: what the values are, for messages ("invariant type").
        group: the entry-point group in which other distributions add theirs, if any.
        homes: the module that registers each built-in name, for those that are imported when they are asked for.
    """

    def __init__(self, what: str, group: str | None = None, homes: Mapping[str, str] | None = None) -> None:
        self.what, self.group = what, group
        self._homes = dict(homes or {})
        self._known: dict[str, T] = {}
        self._found: dict[str, EntryPoint] | None = None

    def add(self, name: str) -> Callable[[T], T]:
        """Decorator: register the decorated value under a name.

        Raises:
            Misuse: the name is taken.
        """

        def register(value: T) -> T:
            home = self._homes.get(name)
            if name in self._known or (home is not None and getattr(value, "__module__", None) != home):
                raise Misuse(f"{self.what} {name!r} is registered twice")
            self._known[name] = value
            return value

        return register

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._homes, *self._known)))

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._homes

    def names(self) -> tuple[str, ...]:
        """Built-in names and the names of installed plug-ins, without loading the plug-ins."""
        return tuple(dict.fromkeys((*self, *self._plugins())))

    def get(self, name: str) -> T:
        """The value of this name.

        Raises:
            Misuse: there is none; the message gives the nearest name. Also when a plug-in cannot be loaded.
        """
        if name in self._homes and name not in self._known:
            import_module(self._homes[name])
        if name in self._known:
            return self._known[name]
        plugins = self._plugins()
        if name in plugins:
            try:
                self._known[name] = cast(T, plugins[name].load())
            except Exception as error:
                raise Misuse(f"{self.what} {name!r} from {plugins[name].value} cannot be loaded: {error}") from error
            return self._known[name]
        known = (*self, *plugins)
        close = nearest(name, known)
        hint = f"did you mean {close!r}?" if close else f"known: {', '.join(sorted(known))}"
        raise Misuse(f"unknown {self.what} {name!r}; {hint}")

    def _plugins(self) -> dict[str, EntryPoint]:
        if self._found is None:
            from importlib.metadata import entry_points

            self._found = {} if self.group is None else {point.name: point for point in entry_points(group=self.group)}
        return self._found
