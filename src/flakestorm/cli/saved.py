"""The store as commands use it: where it lies, saving what a command finds out, reading it back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flakestorm.cli.options import Globals
from flakestorm.config.model import Config
from flakestorm.engine.events import Listener, Report
from flakestorm.errors import Misuse
from flakestorm.reports.trend import LAST, Point
from flakestorm.store.saving import Saving

__all__ = ["FOLDER", "Saving", "both", "comparison_named", "history_of", "report_named", "saving", "store_folder"]

FOLDER = ".flakestorm"
"""The store's folder, beside the config; without one, in the current folder."""


def store_folder(options: Globals, config: Config | None = None) -> Path:
    """Where the store of this project lies; its config is read only where it is not given."""
    if config is not None:
        return Path(config.folder, FOLDER)
    return options.config_path.resolve().parent / FOLDER


def saving(folder: Path) -> Saving:
    """A listener that saves what a command finds out, while entered; see `Saving`."""
    return Saving(folder, _document)


def both(one: Listener, other: Listener) -> Listener:
    """A listener that tells two."""

    def tell(event: Any) -> None:
        one(event)
        other(event)

    return tell


def report_named(name: str, options: Globals) -> Report:
    """The report a user means: a JSON report's path, or what the store knows it by.

    Args:
        name: an existing file; else an id, the beginning or the end of one, or `latest`.
        options: the global options; -c says whose store it is.

    Raises:
        Misuse: there is no such report, or it cannot be read; the message says where it was looked for.
    """
    from flakestorm.reports.document import from_document, read_json
    from flakestorm.store.sqlite import Store

    if Path(name).is_file():
        return read_json(name)
    folder = store_folder(options)
    try:
        with Store(folder) as store:
            return from_document(store.document(store.find(name)))
    except Misuse as error:
        raise Misuse(f"{name}: no such file, and {error}") from error


def comparison_named(name: str, options: Globals) -> dict[str, Any] | None:
    """The comparison a user means, as its document; None where the name is that of something else, or of nothing."""
    from flakestorm.reports.comparison import is_comparison, read
    from flakestorm.store.sqlite import Store

    if Path(name).is_file():
        return read(name)
    try:
        with Store(store_folder(options)) as store:
            document = store.document(store.find(name))
    except Misuse:
        return None
    return document if is_comparison(document) else None


def history_of(folder: Path, report: Report) -> list[Point]:
    """The `ci`s of this config that came to their end before this one, the oldest first, and this one as the last.

    Args:
        folder: the store's.
        report: this one.
    """
    from flakestorm.store.sqlite import Store

    try:
        with Store(folder) as store:
            entries = store.entries(command=report.command)
    except Misuse:
        entries = []
    same = [
        entry
        for entry in entries
        if entry.done and entry.exit_code != 130 and _file(entry.config) == _file(report.config)
    ]
    earlier = [
        Point(e.started_at, e.verdict, _on_one_scale({name: e.value(name) for name in e.scores}))
        for e in reversed(same)
        if e.started_at < report.started_at
    ]
    now = _on_one_scale({name: score.value for name, score in report.scores.items()})
    return [*earlier, Point(report.started_at, report.verdict, now)][-LAST:]


def _file(config: str) -> str:
    return Path(config).name


def _on_one_scale(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: v / 100 if name == "contract" else v for name, v in values.items() if v is not None}


def _document(report: Report) -> dict[str, Any]:
    from flakestorm.reports.document import to_document

    return to_document(report)
