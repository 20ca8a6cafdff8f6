"""The forms a report comes in: how each is called, what its files end with, and what writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from flakestorm.cli.options import FORMATS
from flakestorm.engine.events import Event, Listener, Report, RunResult, RunStarted
from flakestorm.errors import FlakestormError, Misuse
from flakestorm.reports.trend import Point
from flakestorm.store.lull import Lull

if TYPE_CHECKING:
    from flakestorm.reports.otel import Taped

__all__ = ["SUFFIX", "ahead", "exchanges_of", "form_of", "taped", "text", "unknown_suffix", "write"]

SUFFIX = {
    "html": ".html", "json": ".json", "terminal": ".txt", "junit": ".xml", "markdown": ".md", "sarif": ".sarif",
    "otel": ".otlp",
}  # fmt: skip
"""What a file of this form is called by."""

_under_way: list[tuple[Thread, Lull]] = []

_BY_SUFFIX = {**{suffix: form for form, suffix in SUFFIX.items()}, ".htm": "html", ".markdown": "markdown"}


def form_of(asked: str | None, file: Path | None, default: str, *, chosen: bool = False) -> str:
    """The form to use: what was asked for, else what the file's name says, else the default.

    Args:
        chosen: whether somebody chose the default, which then holds for a file of any name.

    Raises:
        Misuse: there is no such form in this version, or the file's name ends like none of them.
    """
    told = None if file is None else _by_name(file.name.lower())
    if file is not None and file.suffix and not (asked or told or chosen):
        raise Misuse(unknown_suffix(file, _BY_SUFFIX))
    form = asked or told or default
    if form not in FORMATS:
        raise Misuse(f"output.format {form!r} is not available in this version; available: {', '.join(FORMATS)}")
    return form


def unknown_suffix(file: Path, known: Iterable[str]) -> str:
    """What is said of a file whose suffix no form has, where nothing else says the form."""
    return f"{file} ends with {file.suffix}, which no form does ({', '.join(known)}); say which it is with --format"


def _by_name(name: str) -> str | None:
    return "otel" if name.endswith(".otlp.json") else _BY_SUFFIX.get(Path(name).suffix)


def write(report: Report, form: str, file: Path, *, history: Sequence[Point] = ()) -> Path:
    """Write the report to the file in this form; the file is replaced in one step.

    Args:
        report: what to write; of a `ci`, the HTML form is its summary page.
        form: one of `FORMATS`.
        file: where to.
        history: of a `ci`, earlier ones and this one.

    Raises:
        Misuse: it cannot be written there; the message says why.
    """
    _settle()
    if form == "html" and report.phases:
        from flakestorm.reports.summary import write_summary

        return write_summary(report, file, history=history)
    if form == "html":
        from flakestorm.reports.html import write_html

        return write_html(report, file, exchanges=exchanges_of)
    if form == "json":
        from flakestorm.reports.document import write_json

        return write_json(report, file)
    from flakestorm.reports.files import write_whole

    return write_whole(file, f"{text(report, form)}\n".encode())


def ahead(form: str) -> Listener:
    """A listener that gets ready what is shown at the end while the agent is at work, which leaves time to spare."""
    begun, lull = False, Lull()

    def tell(event: Event) -> None:
        nonlocal begun
        lull(event)
        if isinstance(event, RunStarted) and not begun:
            begun = True
            thread = Thread(target=_get_ready, args=(form, lull), name="flakestorm-forms", daemon=True)
            thread.start()
            _under_way.append((thread, lull))

    return tell


def _settle() -> None:
    """Wait for what gets ready: of a module that two threads import at once, one may be given the unfinished half."""
    while _under_way:
        thread, lull = _under_way.pop()
        lull.end()
        thread.join()


def _get_ready(form: str, lull: Lull) -> None:
    with suppress(Exception):  # whoever writes or prints it will hear of it
        if form == "html":
            with lull.step():  # the longest first: there is a lull now, and nobody knows how many more there will be
                import flakestorm.reports.html
            with lull.step():
                flakestorm.reports.html.prepare()
        with lull.step():
            import flakestorm.reports.terminal
        with lull.step():
            import flakestorm.tape.reader


def text(report: Report, form: str, *, history: Sequence[Point] = ()) -> str:
    """The report in this form, without a final newline; the arguments are those of `write`."""
    _settle()
    if form == "html" and report.phases:
        from flakestorm.reports.summary import render

        return render(report, history=history).removesuffix("\n")
    return _maker(form)(report).removesuffix("\n")


def _maker(form: str) -> Callable[[Report], str]:
    """What makes the text; each is imported when it is needed."""
    if form == "html":
        from flakestorm.reports.html import render

        return lambda report: render(report, exchanges=exchanges_of)
    if form == "json":
        from flakestorm.reports.document import dumps

        return dumps
    if form == "junit":
        from flakestorm.reports.junit import junit

        return junit
    if form == "markdown":
        from flakestorm.reports.markdown import markdown

        return markdown
    if form == "sarif":
        from flakestorm.reports.sarif import sarif

        return sarif
    if form == "otel":
        return _otel
    from flakestorm.reports.terminal import text as terminal

    return terminal


def _otel(report: Report) -> str:
    from flakestorm.importers.messages import conversation
    from flakestorm.reports.otel import otel

    return otel(report, tapes=taped, conversation=conversation)


def taped(run: RunResult) -> Taped:
    """What a run's tape tells of it; nothing if there is no readable tape."""
    from flakestorm.reports.otel import Taped
    from flakestorm.tape.reader import Tape, describe

    try:
        tape = Tape.open(Path(run.tape))
        return Taped(str(tape.header.get("started_at") or ""), describe(tape)["exchanges"])
    except (FlakestormError, OSError, ValueError):  # the last: a path that no file system has
        return Taped()


def exchanges_of(run: RunResult) -> Sequence[dict[str, Any]]:
    """The exchanges of a run as its tape tells them; none if there is no readable tape."""
    from flakestorm.tape.reader import Tape, describe

    try:
        found: Sequence[dict[str, Any]] = describe(Tape.open(Path(run.tape)))["exchanges"]
    except (FlakestormError, OSError):
        return []
    return found
