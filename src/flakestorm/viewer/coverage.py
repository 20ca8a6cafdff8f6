"""What a search tried, as a map: calls by kinds of fault, and in each square the runs in which that fault fired."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flakestorm.reports.text import encodable, one_line
from flakestorm.viewer.shelf import Saved

__all__ = ["MODES", "RUNS", "SITES", "tried"]

RUNS, SITES, MODES = 5000, 200, 40
"""How much of a search is shown: its first runs, sites and modes."""


def tried(saved: Saved, runs: Callable[[Sequence[str]], Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The map: `modes`, and `rows` with a site and a square for each mode; None where that was not tried.

    A square counts the runs in which this fault fired there, alone or among others, and those of them that broke a
    rule; `run` is one of the latter, else of the former, with as few other faults as can be.

    Args:
        saved: the report of a search.
        runs: gives some of its runs, as documents.
    """
    squares: dict[tuple[str, str], dict[str, Any]] = {}
    for run in runs(saved.runs[:RUNS]):
        id_ = str(run.get("id"))
        faults = run.get("faults")
        fired = faults.get("fired") if isinstance(faults, Mapping) else ()
        hit = dict.fromkeys(
            (str(each.get("site")), str(each.get("mode")))
            for each in (fired if isinstance(fired, list | tuple) else ())
            if isinstance(each, Mapping)
        )
        broke = any(cell.get("verdict") == "fail" for cell in saved.cells_of.get(id_, ()))
        for key in hit:
            square = squares.setdefault(key, {"runs": 0, "broke": 0, "run": id_, "rank": (True, len(hit))})
            square["runs"] += 1
            square["broke"] += broke
            rank = (not broke, len(hit))
            if rank < square["rank"]:
                square |= {"rank": rank, "run": id_}
    sites = list(dict.fromkeys(site for site, _ in squares))[:SITES]
    modes = sorted({mode for _, mode in squares})[:MODES]
    return {
        "modes": [one_line(mode, 60) for mode in modes],
        "rows": [
            {"site": one_line(site, 120), "squares": [_square(squares.get((site, mode))) for mode in modes]}
            for site in sites
        ],
        "beyond": max(len(saved.runs) - RUNS, 0),
    }


def _square(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if found is None else {"runs": found["runs"], "broke": found["broke"], "run": encodable(found["run"])}
