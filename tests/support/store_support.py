"""Documents for the store to keep, and stores that hold some."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from flakestorm.engine.events import Report
from flakestorm.reports.document import to_document
from flakestorm.store.sqlite import Store
from report_samples import sample


def with_tapes(folder: Path, report: Report | None = None, *, content: str = "tape of ") -> Report:
    """A report whose runs have tapes, files in the folder; runs with one number have one content in every report."""
    base = report or sample()
    folder.mkdir(parents=True, exist_ok=True)
    runs = []
    for run in base.runs:
        path = folder / f"{run.id}.tape"
        path.write_text(f"{content}{run.id}")
        runs.append(replace(run, tape=str(path)))
    return replace(base, runs=tuple(runs))


def document(report: Report | None = None, **changes: Any) -> dict[str, Any]:
    """A report's document, with some of its fields changed."""
    return to_document(replace(report or sample(), **changes))


def saved(folder: Path, *reports: Report) -> list[str]:
    """Save these; gives their ids."""
    with Store(folder, write=True) as store:
        return [store.save(to_document(report)) for report in reports]
