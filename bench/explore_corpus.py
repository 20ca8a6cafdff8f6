"""The planted bugs and their healthy twins searched with the default faults; each bug is found, each twin is clean."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.outcome import Claim, Outcome

SUPPORT = Path(__file__).resolve().parent.parent / "tests" / "support"
QUICK = ("makes_up_a_price", "loops_on_429")


def measure(*, quick: bool) -> list[Outcome]:
    if str(SUPPORT) not in sys.path:
        sys.path.insert(0, str(SUPPORT))
    from corpus_support import corpus_world, manifest

    rows, missed, alarms, open_ = [], list[str](), list[str](), list[str]()
    with corpus_world() as up:
        entries = [entry for entry in manifest() if not quick or entry.name in QUICK]
        for entry in entries:
            for which in ("bug", "twin"):
                began = perf_counter()
                report, wrong, misses = _searched(entry, up, which)
                took = perf_counter() - began
                name = f"{entry.name}, {which}"
                missed += [f"{name}: {line}" for line in misses]
                alarms += [f"{name}: {line}" for line in wrong]
                open_ += [] if report["coverage"]["complete"] else [name]
                found = str(len(report["findings"]))
                rows.append((name, str(len(report["runs"])), found, f"{took:.1f} s"))
    claims = [
        Claim(f"the planted bug of each of {len(entries)} agents is found{_but(missed)}", not missed),
        Claim(f"nothing is told of a twin, and of a bug nothing but what is planted{_but(alarms)}", not alarms),
        Claim(f"every search covers each fault and each pair{_but(open_)}", not open_),
    ]
    return [Outcome("Search: the corpus, with the default faults", ("", "runs", "findings", "time"), rows, claims)]


def _searched(entry: Any, up: Any, which: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """The report, findings that are not what is planted, and planted schedules that were not found."""
    from corpus_support import found, project
    from flakestorm import api
    from flakestorm.reports.document import to_document

    with tempfile.TemporaryDirectory() as folder:
        path = project(Path(folder), entry, up, which=which)
        report = to_document(api.load(path).explore(api.Options(tapes=Path(folder) / "tapes"), budget=400))
    if which == "twin":
        return report, [_line(finding) for finding in report["findings"]], []
    wrong = [
        _line(finding)
        for finding in report["findings"]
        if finding["invariant"] != entry.invariant
        or not {at["site"].partition("#")[0] for at in finding["schedule"]} <= entry.sites
    ]
    misses = [" and ".join(sorted(planted)) for planted in entry.planted if planted not in found(report)]
    return report, wrong, misses


def _line(finding) -> str:
    return " and ".join(f"{at['site']}={at['fault']}" for at in finding["schedule"])


def _but(exceptions: list[str]) -> str:
    return f" (not so: {'; '.join(exceptions)})" if exceptions else ""
