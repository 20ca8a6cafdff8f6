"""Lies about a JSON document: which of its values to make false, and which fields to leave out.

A lie keeps every key and every type, so a program reads it like the truth. There are several ways to lie: a value
becomes a false one (`falsehoods.py`), a boolean is turned round, two like fields of one object change places, and a row
of a list gets what stands in another row. Which way and where is drawn by seed; about one value in twelve is touched.
What a schema forbids is not said: each lie is tried against it before it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from flakestorm.core.choices import Choices, Draw
from flakestorm.faults.falsehoods import form_of, number, prose, word
from flakestorm.wire.shape import dump
from flakestorm.wire.splice import Path

__all__ = ["Lie", "anything", "applied", "fields_left_out", "lies", "place", "shortened", "told"]

Fits = Callable[[Any], bool]
_Field = tuple[str | None, ...]  # where a field stands, whatever the row: None is any

_MOST_LEAVES = 2000  # looked at in one document
_MOST_PAIRS = 400
_MOST_NAMES = 200
_LEAVES_PER_LIE = 12
_MOST_LIES = 4
_MOST_TRIES = 60
_SHOWN = 3  # changes that a detail names
_QUOTED = 40
_KEPT = frozenset(("$schema", "$id", "@context", "@type", "@id", "jsonrpc"))
"""Keys that say what a document is, not what it tells."""


@dataclass(frozen=True, slots=True)
class Lie:
    """Values that change together.

    Args:
        values: the new values, by where they stand.
        words: what was changed, e.g. `price 120 -> 134`.
    """

    values: tuple[tuple[Path, Any], ...]
    words: str


def anything(_: Any) -> bool:
    """The schema of what nobody described: everything fits."""
    return True


def lies(document: Any, choices: Choices, fits: Fits = anything) -> list[Lie]:
    """Lies about a document that can be told together; none where there is nothing to lie about.

    Args:
        document: as a JSON parser gives it.
        choices: draws.
        fits: whether a document may be said.
    """
    draw = choices.stream("lies")
    leaves = _leaves(document)
    ways = _ways(document, leaves, draw)
    order = sorted(ways)
    draw.shuffle(order)
    wanted = 1 + min(_MOST_LIES - 1, len(leaves) // _LEAVES_PER_LIE)
    chosen: list[Lie] = []
    taken: set[Path] = set()
    if not fits(document):  # the server broke its own word, so nobody holds this one to it
        fits = anything
    for _ in range(_MOST_TRIES):
        if len(chosen) == wanted or not order:
            break
        way = order.pop(0)
        lie = ways[way].pop(draw.randrange(len(ways[way])))()
        if ways[way]:
            order.append(way)
        if lie is None or taken & {path for path, _ in lie.values}:
            continue
        if fits(applied(document, [*chosen, lie])):
            chosen.append(lie)
            taken.update(path for path, _ in lie.values)
    return chosen


def applied(document: Any, chosen: Sequence[Lie]) -> Any:
    """The document with these lies in it; the original stays as it is."""
    return _with(document, {path: value for lie in chosen for path, value in lie.values}, ())


def shortened(document: Any, without: Sequence[Path]) -> Any:
    """The document without these fields; the original stays as it is."""
    return _with(document, {}, without)


def told(chosen: Sequence[Lie]) -> str:
    """What was changed, in words, for the ledger."""
    shown = ", ".join(lie.words for lie in chosen[:_SHOWN])
    return shown if len(chosen) <= _SHOWN else f"{shown} and {len(chosen) - _SHOWN} more"


def fields_left_out(document: Any, choices: Choices, fits: Fits = anything) -> tuple[list[Path], str]:
    """Fields to leave out, wherever they stand in the document, and what they are called; none where there are none.

    A field of the rows of a list goes from all rows, as it does when an interface changes. One to three fields go, more
    where there are more. Those that `fits` lets go are taken first; only where it lets none go are others taken.
    """
    draw = choices.stream("fields")
    found: dict[_Field, list[Path]] = {}
    for path in _fields(document):
        found.setdefault(tuple(None if isinstance(step, int) else step for step in path), []).append(path)
    every = list(found)[:_MOST_NAMES]
    optional = [one for one in every if fits(shortened(document, found[one]))] if fits is not anything else every[:]
    wanted = 1 + min(2, len(every) // 8)
    order = optional or every
    draw.shuffle(order)
    chosen: list[_Field] = []
    for one in order:
        apart = not any(one[: len(other)] == other or other[: len(one)] == one for other in chosen)
        together = [path for other in (*chosen, one) for path in found[other]]
        if apart and (not optional or fits(shortened(document, together))):
            chosen.append(one)
        if len(chosen) == wanted:
            break
    names = ", ".join(place(found[one][0], rows=True) for one in chosen)
    return [path for one in chosen for path in found[one]], names


def place(path: Path, *, rows: bool = False) -> str:
    """Where a value stands, in words: `results[0].price`; with `rows`, the index is left out. `result` for the root."""
    words = ""
    for step in path:
        words += f"[{'' if rows else step}]" if isinstance(step, int) else f".{step}" if words else step or '""'
    return words or "result"


def _leaves(document: Any) -> list[tuple[Path, Any]]:
    """The values that hold no others, in order; of a very long document the first."""
    found: list[tuple[Path, Any]] = []
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting and len(found) < _MOST_LEAVES:
        path, value = waiting.pop()
        if isinstance(value, dict):
            inner = [((*path, key), item) for key, item in value.items() if key not in _KEPT]
            waiting += reversed(inner)
        elif isinstance(value, list):
            waiting += reversed([((*path, index), item) for index, item in enumerate(value)])
        else:
            found.append((path, value))
    return found


def _ways(document: Any, leaves: list[tuple[Path, Any]], draw: Draw) -> dict[str, list[Callable[[], Lie | None]]]:
    """Every way to lie that there is something for, with the lies to be had that way."""
    ways: dict[str, list[Callable[[], Lie | None]]] = {}

    def offer(way: str, path: Path, was: Any) -> None:
        ways.setdefault(way, []).append(lambda: _false(path, was, draw))

    for path, was in leaves:
        if isinstance(was, bool):
            offer("turned", path, was)
        elif isinstance(was, (int, float)):
            offer("number", path, was)
        elif isinstance(was, str) and any(sign.isdigit() for sign in was):
            offer("date" if form_of(was) in ("date", "time", "date and time") else "text", path, was)
    for way, found in (("swap", _swaps(document)), ("row", _rows(document))):
        offered: list[Callable[[], Lie | None]] = [lambda lie=lie: lie for lie in islice(found, _MOST_PAIRS)]  # type: ignore[misc]
        if offered:
            ways[way] = offered
    return ways


def _false(path: Path, was: Any, draw: Draw) -> Lie | None:
    now: Any
    if isinstance(was, bool):
        now = not was
    elif isinstance(was, (int, float)):
        now = number(was, draw)
    elif (now := word(was, draw)) is None:
        now, changes = prose(was, draw, 1 + min(2, len(was) // 200))
        if changes:
            return Lie(((path, now),), ", ".join(f"{place(path)} {old} -> {new}" for old, new in changes))
    return None if now == was else Lie(((path, now),), _changed(path, was, now))


def _swaps(document: Any) -> Iterator[Lie]:
    """Two fields of one object that hold values of one form: each gets what the other has."""
    for path, value in _containers(document, dict):
        plain = [(key, item) for key, item in value.items() if key not in _KEPT and _form(item)][:20]
        for at, (key, item) in enumerate(plain):
            for other, its in plain[at + 1 :]:
                if item != its and _form(item) == _form(its):
                    here, there = (*path, key), (*path, other)
                    words = f"{_changed(here, item, its)}, {_changed(there, its, item)}"
                    yield Lie(((here, its), (there, item)), words)


def _rows(document: Any) -> Iterator[Lie]:
    """A row of a list with what stands in the next row that differs: a field of it, or the whole where it has none."""
    for path, rows in _containers(document, list):
        for index, row in enumerate(rows[:20]):
            other = rows[(index + 1) % len(rows)]
            if isinstance(row, dict) and isinstance(other, dict):
                for key, was in row.items():
                    now = other.get(key)
                    if now is not None and now != was and type(now) is type(was) and not isinstance(now, (dict, list)):
                        yield Lie((((*path, index, key), now),), _changed((*path, index, key), was, now))
            elif isinstance(row, str) and isinstance(other, str) and row != other:
                yield Lie((((*path, index), other),), _changed((*path, index), row, other))


def _containers(document: Any, kind: type) -> Iterator[tuple[Path, Any]]:
    waiting: list[tuple[Path, Any]] = [((), document)]
    seen = 0
    while waiting and seen < _MOST_LEAVES:
        path, value = waiting.pop()
        seen += 1
        if isinstance(value, kind):
            yield path, value
        steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [((*path, step), item) for step, item in steps if isinstance(item, (dict, list))]


def _fields(document: Any) -> Iterator[Path]:
    for path, value in _containers(document, dict):
        yield from ((*path, key) for key in value if key not in _KEPT)


def _form(value: Any) -> str:
    """What may change places with what; empty for what never does."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return type(value).__name__
    return form_of(value) if isinstance(value, str) else ""


def _with(document: Any, values: dict[Path, Any], without: Sequence[Path]) -> Any:
    """A copy with other values and fewer fields; what is not on the way to them is shared."""
    gone = frozenset(without)
    on_the_way = {path[:length] for path in (*values, *gone) for length in range(len(path))}

    def copy(value: Any, path: Path) -> Any:
        if path in values:
            return values[path]
        if path not in on_the_way:
            return value
        if isinstance(value, dict):
            return {key: copy(item, (*path, key)) for key, item in value.items() if (*path, key) not in gone}
        if isinstance(value, list):
            return [copy(item, (*path, index)) for index, item in enumerate(value)]
        return value

    return copy(document, ())


def _changed(path: Path, was: Any, now: Any) -> str:
    return f"{place(path)} {_shown(was)} -> {_shown(now)}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else dump(value).decode()
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"
