"""`flakestorm ci`: every configured phase, one overall score, one page."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import click

from flakestorm import api
from flakestorm.api.loading import check_load
from flakestorm.cli.forms import write
from flakestorm.cli.judging import min_score_option
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import Place, place_for, present, results_only, watching
from flakestorm.cli.saved import Saving, history_of, report_named, saving, store_folder
from flakestorm.cli.spending import Spending, estimate, spending_options
from flakestorm.config.blocks import blocks_in
from flakestorm.core.choices import entropy_seed
from flakestorm.engine.events import Event, Finished, Listener, PhaseResult, Planned, Report, RunFinished
from flakestorm.engine.pacing import Pacing
from flakestorm.engine.whole import PHASES, Whole
from flakestorm.errors import Misuse
from flakestorm.version import __version__

__all__ = ["ci", "configured"]

Judge = Callable[[api.Project, api.Options], Report]

JUDGES: dict[str, Judge] = {
    "mutation": api.Project.mutations,
    "chaos": lambda project, options: project.chaos(None, options),
    # Cells that are not critical are for the overall score, so the phase's own gate lets every score pass.
    "contract": lambda project, options: project.contract(replace(options, min_score=0.0)),
    "replay": lambda project, options: project.replay(None, options),
    # How many runs there are, and how many at once, is what its block says.
    "load": lambda project, options: project.under_load(replace(options, concurrency=None, trials=None, early=None)),
}
"""What runs each phase."""


@click.command()
@global_options
@min_score_option("the least overall score", full=1)
@click.option("--resume", metavar="FILE|RUN", help="Go on from an interrupted `ci`: its JSON report, or its id.")
@spending_options
def ci(options: Globals, min_score: float | None, resume: str | None, spending: Spending) -> int:
    """Run every configured phase and judge the whole: may this build ship?

    Phases are mutation (block `mutations`), chaos (block `chaos`), contract (block `contract`), replay (block
    `replays`) and load (block `load`). The overall score is the mean of the phases' scores, weighted by `scoring`; load
    has no part in it.

    Fails on a critical failure, on a failing session, on a promise or a latency limit broken under load, and on an
    overall score below --min-score.
    """
    project = api.load(options.config_path)
    if project.config.contract is not None:
        project.check()  # what is wrong with a later phase is said before an earlier one is run
    if project.config.replays.sessions:
        project.check_sessions()
    names = configured(project)
    if "load" in names:
        check_load(project)
    if not names:
        raise Misuse(
            f"{options.config_path}: there is nothing to run: add a 'mutations', 'chaos', 'contract', 'replays' "
            "or 'load' block"
        )
    if spending.dry_run:
        return _dry_run(project, options, names)
    place = place_for(options, project.config, "ci")
    earlier = None if resume is None else report_named(resume, options)
    with results_only(), watching(options) as shown, saving(store_folder(options, project.config)) as save:
        pacing = Pacing(monotonic, project.config.advanced.rate_limit)  # its phases use up one budget
        ci = _Ci(project, options, place, shown, save, earlier, min_score or 0.0, spending.options(), pacing)
        report = ci.run(names)
    history = history_of(store_folder(options, project.config), report)
    _step_summary(report)
    return present(report, place, options, save, history=history)


def configured(project: api.Project) -> list[str]:
    """The phases that this config asks for, in the order they are run."""
    config, blocks = project.config, blocks_in(project.path)
    asked = {
        "mutation": config.version == "1.0" or "mutations" in blocks,
        "chaos": config.chaos is not None,
        "contract": config.contract is not None,
        "replay": bool(config.replays.sessions or config.replays.sources),
        "load": "load" in blocks,
    }
    return [name for name in PHASES if asked[name]]


@dataclass(slots=True)
class _Ci:
    """One `ci` under way."""

    project: api.Project
    options: Globals
    place: Place
    shown: Listener
    save: Saving
    earlier: Report | None
    min_score: float
    spending: dict[str, Any]
    pacing: Pacing

    def run(self, names: Sequence[str]) -> Report:
        """Run the phases, one after the other, until one is interrupted."""
        whole, began_s = Whole(len(self.project.config.golden_prompts)), perf_counter()
        outline = self._outline()
        phases = {name: self._waiting(name) for name in names}

        def so_far() -> Report:
            timed = replace(outline, duration_ms=round((perf_counter() - began_s) * 1000, 1))
            return whole.report(timed, list(phases.values()), min_score=self.min_score)

        self.save(Planned("ci", 0, so_far()))
        for name in names:
            report = self._phase(name, whole, outline.seed)
            whole.add(name, report)
            phases[name] = self._done(name, report)
            write(so_far(), "json", self._folder / "report.json")  # to resume from, however this ends
            if report.interrupted or report.stopped:
                break
        report = so_far()
        self.save(Finished(report))
        return report

    @property
    def _folder(self) -> Path:
        """Where the phases' own reports go."""
        file = self.place.file
        return self.place.folder if file is None else file.with_name(f"{file.stem}.phases")

    def _outline(self) -> Report:
        """What is known before anything is run."""
        earlier = None if self.earlier is None else self.earlier.seed
        seeds = (self.options.seed, earlier, self.project.config.advanced.seed, entropy_seed())
        seed = next(s for s in seeds if s is not None)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return Report(
            "ci", "inconclusive", 3, "", seed, now, 0.0, {}, (), (),
            config=str(self.project.path), version=__version__,
        )  # fmt: skip

    def _phase(self, name: str, whole: Whole, seed: int) -> Report:
        def tell(event: Event) -> None:
            self.shown(event)
            if isinstance(event, Planned) and event.outline is not None:
                whole.names(name, event.outline)
            elif isinstance(event, RunFinished) and (names := whole.known(name)) is not None:
                self.save(RunFinished(names.run(event.run), tuple(map(names.cell, event.cells))))

        before = next((p for p in (self.earlier.phases if self.earlier else ()) if p.name == name), None)
        options = api.Options(
            seed=seed,
            trials=self.options.trials,
            concurrency=self.options.concurrency,
            tapes=self._folder / f"{name}.tapes",
            # Tapes that stand in for the world are here, and so is the one instance that users share.
            ray=None if name in ("replay", "load") else self.options.ray,
            listener=tell,
            resume=Path(before.report) if before is not None and Path(before.report).is_file() else None,
            pacing=self.pacing,
            **self.spending,
        )
        return JUDGES[name](self.project, options)

    def _done(self, name: str, report: Report) -> PhaseResult:
        """Write the phase's own reports; gives the phase as the summary has it."""
        json, html = (write(report, form, self._folder / f"{name}.{form}") for form in ("json", "html"))
        return replace(
            self._waiting(name),
            status="interrupted" if report.interrupted else "stopped" if report.stopped else "done",
            verdict=report.verdict,
            headline=report.headline,
            score=report.scores.get(PHASES[name]),
            report=str(json),
            page=str(html),
        )

    def _waiting(self, name: str) -> PhaseResult:
        weight = float(getattr(self.project.config.scoring, name, 0.0))
        return PhaseResult(name, "not run", "inconclusive", "it was not run", weight)


def _dry_run(project: api.Project, options: Globals, names: Sequence[str]) -> int:
    """Say what each phase would run, and what that would cost."""
    folder = store_folder(options, project.config)
    told = api.Options(seed=options.seed, trials=options.trials, dry_run=True)
    for name in names:
        click.echo(f"{name}: {estimate(JUDGES[name](project, told), folder)}")
    return 0


def _step_summary(report: Report) -> None:
    """GitHub Actions names a file whose Markdown it shows on the job's page."""
    named = os.environ.get("GITHUB_STEP_SUMMARY")
    if not named:
        return
    from flakestorm.reports.markdown import markdown

    try:
        with Path(named).open("a", encoding="utf-8") as file:
            file.write(markdown(report))
    except OSError as error:
        print(f"note: GITHUB_STEP_SUMMARY cannot be written: {error.strerror}", file=sys.stderr)
