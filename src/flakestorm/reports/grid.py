"""The heat map as data: scenarios x invariants, with what happened in each square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from flakestorm.core.record import Record
from flakestorm.engine.events import CellResult, InvariantInfo, Report, ScenarioInfo, Score
from flakestorm.stats.intervals import in_places, wilson

__all__ = ["SEVERITY", "Grid", "Mark", "Square", "grid_of", "intervals_line", "scale_of", "score_text", "worst_first"]

Mark = Literal["pass", "part", "fail", "open", "none"]

_RATES = 12
SEVERITY = {"critical": 0, "high": 1, "medium": 2, "low": 3}
"""Rank of each severity, the worst first."""


class Square(Record, frozen=True):
    """One invariant in one scenario, over all its prompts and trials.

    Args:
        scenario, invariant: which square this is.
        cells: its cells, in plan order; none when the invariant did not apply there.
    """

    scenario: ScenarioInfo
    invariant: InvariantInfo
    cells: tuple[CellResult, ...] = ()

    @property
    def passed(self) -> int:
        return sum(cell.verdict == "pass" for cell in self.cells)

    @property
    def failed(self) -> int:
        return sum(cell.verdict == "fail" for cell in self.cells)

    @property
    def inconclusive(self) -> int:
        return sum(cell.verdict == "inconclusive" for cell in self.cells)

    @property
    def conclusive(self) -> int:
        return self.passed + self.failed

    @property
    def mark(self) -> Mark:
        """`pass`: all conclusive cells did; `part`: some; `fail`: none; `open`: none is conclusive; `none`: no cell."""
        if not self.cells:
            return "none"
        if not self.conclusive:
            return "open"
        if not self.failed:
            return "pass"
        return "part" if self.passed else "fail"

    @property
    def rate(self) -> str:
        """`passed/conclusive`, with `+n?` for the inconclusive ones; `n/a` where the invariant did not apply."""
        if not self.cells:
            return "n/a"
        return f"{self.passed}/{self.conclusive}" + (f" +{self.inconclusive}?" if self.inconclusive else "")

    @property
    def evidence(self) -> str:
        """The rate with its count and 95% interval, in words; empty where no cell is conclusive."""
        interval = wilson(self.passed, self.conclusive)
        if interval is None:
            return ""
        low, high = interval
        return f"{self.passed} of {self.conclusive} passed (95% interval {low:.3f} to {high:.3f})"

    @property
    def chaos_is_not_the_cause(self) -> bool:
        """Every failing cell here also fails without chaos."""
        failing = [cell for cell in self.cells if cell.verdict == "fail"]
        return bool(failing) and all(cell.also_fails_without_chaos for cell in failing)

    @property
    def unsteady(self) -> bool:
        """Equal runs of one of its prompts differ, and nothing sets the agent back."""
        return any(cell.unsteady for cell in self.cells)


class Grid(Record, frozen=True):
    """The whole map: one row of squares per scenario, in plan order; columns as in `invariants`."""

    invariants: tuple[InvariantInfo, ...]
    rows: tuple[tuple[Square, ...], ...]

    @property
    def squares(self) -> Iterable[Square]:
        return (square for row in self.rows for square in row)


def grid_of(report: Report) -> Grid:
    """Arrange a report's cells. Axes come from the plan; a name that only a cell mentions is added at the end."""
    scenarios = {s.name: s for s in report.scenarios}
    invariants = {i.id: i for i in report.invariants}
    gathered: dict[tuple[str, str], list[CellResult]] = {}
    for cell in report.cells:
        scenarios.setdefault(cell.scenario, ScenarioInfo(cell.scenario))
        invariants.setdefault(cell.invariant, InvariantInfo(cell.invariant, "", cell.severity))
        gathered.setdefault((cell.scenario, cell.invariant), []).append(cell)
    return Grid(
        tuple(invariants.values()),
        tuple(
            tuple(Square(s, i, tuple(gathered.get((s.name, i.id), ()))) for i in invariants.values())
            for s in scenarios.values()
        ),
    )


def intervals_line(grid: Grid) -> str:
    """The 95% interval of every rate on the map, each once, where squares have no room for them; empty without rates.

    Of more than 12 different rates, those of the fewest cells: they are the least certain.
    """
    rates = sorted({(square.conclusive, square.passed) for square in grid.squares if square.conclusive})
    said = []
    for conclusive, passed in rates[:_RATES]:
        low, high = wilson(passed, conclusive) or (0.0, 1.0)
        said.append(f"{passed}/{conclusive} is {low:.3f} to {high:.3f}")
    more = "; the others are in the HTML report" if len(rates) > _RATES else ""
    return f"each rate's 95% interval: {', '.join(said)}{more}" if said else ""


def worst_first(cells: Iterable[CellResult]) -> list[CellResult]:
    """The cells that did not pass: failures before inconclusive ones, the severest first, else in plan order."""
    return sorted(
        (cell for cell in cells if cell.verdict != "pass"),
        key=lambda cell: (cell.verdict != "fail", SEVERITY[cell.severity]),
    )


def scale_of(name: str, score: Score) -> int:
    """What a score's full mark is: 100 for contract resilience (and whatever exceeds 1), else 1."""
    numbers = [n for n in (score.value, score.low, score.high) if n is not None]
    return 100 if name in ("contract", "load") or any(n > 1 for n in numbers) else 1


def score_text(name: str, score: Score, headline: str = "") -> str:
    """A score as a number, or `no data`: 2 places of 100, else 3, and 4 where the headline tells them.

    Gates hold 4 places against what was asked for, so .9496 is no .950 beside the .95 that it missed.

    Args:
        headline: of the report; empty where no gate stands beside the score.
    """
    if score.value is None:
        return "no data"
    full = scale_of(name, score)
    places = 2 if full == 100 else 3
    if _told(score.value) in headline:
        places = max(places, len(f"{score.value:g}".partition(".")[2]))
    return f"{in_places(score.value, places, full=full):.{places}f}"


def _told(value: float) -> str:
    """How the gate's sentence tells a score that is too low."""
    return f"score {value:g} is below the "
