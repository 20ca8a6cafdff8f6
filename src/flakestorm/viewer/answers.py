"""What each of the viewer's data addresses answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from flakestorm.errors import FlakestormError
from flakestorm.reports import comparison_text, html
from flakestorm.reports.comparison import dumps as dumps_comparison
from flakestorm.reports.comparison import is_comparison
from flakestorm.reports.document import dumps, from_document
from flakestorm.reports.excerpt import OUTPUT_CHARS, excerpt
from flakestorm.reports.summary import render as render_summary
from flakestorm.reports.text import encodable, one_line, visible
from flakestorm.store.sqlite import Store
from flakestorm.tape.document import Documents
from flakestorm.viewer.exchange import TURNS, decoded
from flakestorm.viewer.orders import refused
from flakestorm.viewer.recording import Recording
from flakestorm.viewer.shelf import Saved, Shelf
from flakestorm.viewer.sides import Pair, pairs, words
from flakestorm.viewer.trends import trends
from flakestorm.viewer.views import cell_view, entry_view, report_view, run_row, run_view, verdict_of

__all__ = ["Answers", "Asked"]

SLICE = 100
MOST = 500
"""Lines of a list in one answer."""

Answer = Callable[["Asked"], dict[str, Any]]


class Asked(Protocol):
    """The part of a request that an answer depends on."""

    @property
    def query(self) -> Mapping[str, str]: ...


class Answers:
    """Answers from one shelf. Each takes a request and gives JSON-ready values; for several threads.

    Every answer raises FlakestormError where there is no such thing or it cannot be read, and ValueError where the
    request makes no sense.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._pairs: dict[tuple[int, int], tuple[Recording, Recording, list[Pair]]] = {}

    def all(self) -> dict[str, Answer]:
        """Every data address below /api/."""
        return {
            "reports": self.reports, "trends": self.trends, "report": self.report, "cell": self.cell,
            "runs": self.runs, "run": self.run, "tapes": self.tapes, "tape": self.tape,
            "exchanges": self.exchanges, "exchange": self.exchange, "diff": self.diff, "pair": self.pair,
        }  # fmt: skip

    def reports(self, asked: Asked) -> dict[str, Any]:
        """Saved reports, the newest first."""
        entries = self._shelf.entries()
        return {"folder": visible(str(self._shelf.folder)), **_slice(asked, entries, entry_view)}

    def trends(self, _: Asked) -> dict[str, Any]:
        """How scores went."""
        return {"trends": trends(self._shelf.entries())}

    def report(self, asked: Asked) -> dict[str, Any]:
        """One report, without its runs."""
        saved = self._saved(asked)
        return report_view(saved, partial(self._shelf.runs, saved.id))

    def cell(self, asked: Asked) -> dict[str, Any]:
        """The runs behind a square of the heat map."""
        saved = self._saved(asked)
        square, cells = cell_view(saved, asked.query.get("scenario", ""), asked.query.get("invariant", ""))
        begin, end = _range(asked)
        found = {run["id"]: run for run in self._shelf.runs(saved.id, [cell.run for cell in cells[begin:end]])}
        items = [
            {
                "verdict": cell.verdict,
                "reason": visible(cell.reason),
                "prompt": cell.prompt,
                "trial": cell.trial,
                "also": cell.also_fails_without_chaos,
                "run": run_row(found[cell.run], saved) if cell.run in found else None,
            }
            for cell in cells[begin:end]
        ]
        why = refused(self._shelf, f"{saved.id}/")
        return {"square": square, "total": len(cells), "items": items, "refused": why}

    def runs(self, asked: Asked) -> dict[str, Any]:
        """A report's runs, in plan order; of one verdict where that is asked for."""
        saved, verdict = self._saved(asked), asked.query.get("verdict", "")
        wanted = [run for run in saved.runs if not verdict or verdict_of(saved.cells_of.get(run, ())) == verdict]
        begin, end = _range(asked)
        found = self._shelf.runs(saved.id, wanted[begin:end])
        return {"total": len(wanted), "items": [run_row(run, saved) for run in found]}

    def run(self, asked: Asked) -> dict[str, Any]:
        """One run, without its exchanges, and its neighbours' ids."""
        saved, id_ = self._saved(asked), asked.query.get("run", "")
        found = self._shelf.runs(saved.id, [id_])
        if not found:
            raise FlakestormError(f"report {saved.id} has no run {one_line(id_, 80)!r}")
        at = saved.runs.index(id_)
        return {
            **run_view(found[0], saved, taped=self._shelf.taped(saved.id, id_)),
            "report": saved.id,
            "refused": refused(self._shelf, f"{saved.id}/{id_}"),
            "command": one_line(str(saved.head.get("command", "")), 80),
            "other": _other_version(saved, at),
            "before": saved.runs[at - 1] if at else None,
            "after": saved.runs[at + 1] if at + 1 < len(saved.runs) else None,
        }

    def tapes(self, asked: Asked) -> dict[str, Any]:
        """Tapes that belong to no report."""
        return _slice(asked, self._shelf.loose_tapes(), lambda tape: {"path": encodable(tape[0]), "bytes": tape[1]})

    def tape(self, asked: Asked) -> dict[str, Any]:
        """What a tape's first and last line say."""
        recording = self._recording(asked, "of")
        return {
            "exchanges": len(recording.lines),
            "end_ms": recording.end_ms,
            "complete": recording.complete,
            "damage": recording.damage,
            "run": one_line(recording.run, 120),
            "input": None if recording.input is None else excerpt(recording.input, OUTPUT_CHARS),
            "output": excerpt(recording.output, OUTPUT_CHARS),
            "error": None if recording.error is None else excerpt(recording.error, 4000),
        }

    def exchanges(self, asked: Asked) -> dict[str, Any]:
        """A tape's exchanges in one line each, in order of arrival."""
        return _slice(asked, self._recording(asked, "of").lines, lambda line: line.row)

    def exchange(self, asked: Asked) -> dict[str, Any]:
        """One exchange, decoded."""
        turns = min(max(int(asked.query.get("turns", TURNS)), 1), 5000)
        return decoded(self._recording(asked, "of").exchange(int(asked.query.get("at", "0"))), turns=turns)

    def diff(self, asked: Asked) -> dict[str, Any]:
        """Two tapes side by side; only pairs that differ where that is asked for."""
        left, right, found = self._paired(asked)
        shown = [(at, pair) for at, pair in enumerate(found) if not (asked.query.get("only") and pair.same)]
        return {
            "left": len(left.lines),
            "right": len(right.lines),
            "differ": sum(not pair.same for pair in found),
            "first": next((at for at, (_, pair) in enumerate(shown) if not pair.same), None),
            "outputs": [excerpt(side.error or side.output, 4000) for side in (left, right)],
            **_slice(asked, shown, lambda item: _pair_row(left, right, *item)),
        }

    def pair(self, asked: Asked) -> dict[str, Any]:
        """One pair of exchanges, decoded, and where they differ."""
        left, right, found = self._paired(asked)
        at = int(asked.query.get("at", "0"))
        if not 0 <= at < len(found):
            raise FlakestormError(f"there is no pair {at}; the two tapes make {len(found)}")
        ours = None if (place := found[at].left) is None else left.exchange(place)
        theirs = None if (place := found[at].right) is None else right.exchange(place)
        both = ours is not None and theirs is not None
        said = words(ours, theirs) if ours is not None and theirs is not None else {"asked": [], "said": []}
        return {
            "left": ours and decoded(ours),
            "right": theirs and decoded(theirs),
            "both": both,
            "differences": {part: [visible(line) for line in lines] for part, lines in said.items()},
        }

    def page(self, asked: Asked) -> str:
        """A report as the HTML page that `flakestorm report -o X.html` writes."""
        found = self._document(asked)
        if is_comparison(found):
            return comparison_text.page(found)
        report = from_document(found)
        if report.phases:
            return render_summary(report)
        tapes = {run.id: f"{asked.query.get('id', '')}/{run.id}" for run in report.runs}

        def exchanges(run: Any) -> Sequence[Mapping[str, Any]]:
            if not self._shelf.taped(asked.query.get("id", ""), run.id):
                return []
            return Documents(list(self._shelf.recording(tapes[run.id]).exchanges(0, 101)))

        return html.render(report, exchanges=exchanges)

    def document(self, asked: Asked) -> str:
        """A report as JSON."""
        found = self._document(asked)
        if is_comparison(found):
            return dumps_comparison(found)
        return dumps(from_document(found))

    def _document(self, asked: Asked) -> dict[str, Any]:
        with Store(self._shelf.folder) as store:
            return store.document(asked.query.get("id", ""))

    def _saved(self, asked: Asked) -> Saved:
        return self._shelf.saved(asked.query.get("id", ""))

    def _recording(self, asked: Asked, side: str) -> Recording:
        return self._shelf.recording(asked.query.get(side, ""))

    def _paired(self, asked: Asked) -> tuple[Recording, Recording, list[Pair]]:
        left, right = (self._recording(asked, side) for side in ("left", "right"))
        key = (id(left), id(right))  # the entry holds both, so that no other gets their ids
        if key not in self._pairs:
            made = (left, right, pairs(left, right))
            if len(self._pairs) >= 3:
                self._pairs.clear()
            self._pairs[key] = made
        return self._pairs[key]


def _slice(asked: Asked, found: Sequence[Any], view: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    begin, end = _range(asked)
    return {"total": len(found), "items": [view(each) for each in found[begin:end]]}


def _range(asked: Asked) -> tuple[int, int]:
    begin = max(int(asked.query.get("offset", "0")), 0)
    return begin, begin + min(max(int(asked.query.get("limit", SLICE)), 0), MOST)


def _other_version(saved: Saved, at: int) -> str | None:
    """Of a comparison's run, the same run of the other version: they stand side by side, BASE first."""
    beside = at ^ 1
    if saved.report is not None or beside >= len(saved.runs):
        return None
    pair = saved.runs[min(at, beside)], saved.runs[max(at, beside)]
    return saved.runs[beside] if [run.partition("/")[0] for run in pair] == ["base", "head"] else None


def _pair_row(left: Recording, right: Recording, at: int, pair: Pair) -> dict[str, Any]:
    return {
        "at": at,
        "left": None if pair.left is None else left.lines[pair.left].row,
        "right": None if pair.right is None else right.lines[pair.right].row,
        "asked": pair.asked,
        "said": pair.said,
        "same": pair.same,
    }
