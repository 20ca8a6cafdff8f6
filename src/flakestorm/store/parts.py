"""A saved report in parts: its head, its cells, some of its runs. For readers who cannot wait for the whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flakestorm.errors import Misuse
from flakestorm.store.sqlite import Store

__all__ = ["cells", "head", "kept_tape", "run_ids", "runs"]

_AT_ONCE = 500


def head(store: Store, id_: str) -> tuple[dict[str, Any], bool]:
    """All of the report's document but its runs and cells, and whether its command came to its end.

    Raises:
        Misuse: there is no such report.
    """
    rows = store.rows("SELECT head, state FROM reports WHERE id = ?", (id_,))
    if not rows:
        raise Misuse(f"no report {id_!r} in the store {store.place}")
    return json.loads(rows[0][0]), rows[0][1] == "done"


def cells(store: Store, id_: str) -> list[dict[str, Any]]:
    """The report's cells, in plan order."""
    rows = store.rows("SELECT document FROM cells WHERE report = ? ORDER BY position", (id_,))
    return [json.loads(cell) for (cell,) in rows]


def run_ids(store: Store, id_: str) -> list[str]:
    """The ids of the report's runs, in plan order."""
    return [str(run) for (run,) in store.rows("SELECT id FROM runs WHERE report = ? ORDER BY position, id", (id_,))]


def runs(store: Store, id_: str, wanted: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Some of the report's runs, by their ids; ids that it does not have are left out."""
    found: dict[str, dict[str, Any]] = {}
    for begin in range(0, len(wanted), _AT_ONCE):
        some = wanted[begin : begin + _AT_ONCE]
        query = f"SELECT id, document FROM runs WHERE report = ? AND id IN ({', '.join('?' * len(some))})"  # noqa: S608 - question marks only
        found |= {run: json.loads(document) for run, document in store.rows(query, (id_, *some))}
    return found


def kept_tape(store: Store, id_: str, run: str) -> Path | None:
    """Where the content of this run's tape lies; None where the store has none."""
    rows = store.rows("SELECT tape FROM runs WHERE report = ? AND id = ?", (id_, run))
    if not (rows and rows[0][0]):
        return None
    store.content.fetch([rows[0][0]])
    return store.content.path(rows[0][0])
