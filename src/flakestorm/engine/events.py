"""What the engine tells the world: events while it works, one `Report` at the end.

The terminal, every report and the viewer are consumers of these values and of nothing else, so what a person sees, what
CI reads and what a script parses cannot drift apart. Field names are those of the machine-readable form
(`flakestorm-report/1`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import field

from flakestorm.config.model import Severity
from flakestorm.core.conversation import Turn
from flakestorm.core.ledger import Canary, Firing
from flakestorm.core.record import Record
from flakestorm.core.verdict import Outcome, Score
from flakestorm.engine.blamed import Blaming
from flakestorm.engine.loaded import Loaded
from flakestorm.engine.pacing import Paced, Refusal

__all__ = [
    "CellResult",
    "CoverageResult",
    "Event",
    "FaultAt",
    "FaultTally",
    "Finding",
    "Finished",
    "InvariantInfo",
    "Listener",
    "MutationInfo",
    "Note",
    "PhaseResult",
    "Planned",
    "Progressed",
    "Report",
    "RunFinished",
    "RunResult",
    "RunStarted",
    "ScenarioInfo",
    "Score",
]


class CellResult(Record, frozen=True):
    """One invariant judged on one run.

    Args:
        scenario, invariant: by name and id.
        severity: of the invariant.
        prompt: 0-based index of the golden prompt; probes are numbered on from the last golden prompt.
        trial: from 1.
        verdict, reason: the judgement and why.
        run: id of the run it was judged on.
        also_fails_without_chaos: the same prompt fails this invariant without chaos too, so chaos is not the cause.
        also_fails_unmutated: of a mutation, its golden prompt fails this too, so the mutation is not the cause.
        min_pass_rate: the share of the cell's conclusive trials that must pass, 0..1.
        unsteady: equal runs of this prompt without chaos differed, and nothing sets the agent back between runs.
    """

    scenario: str
    invariant: str
    severity: Severity
    prompt: int
    trial: int
    verdict: Outcome
    reason: str
    run: str
    also_fails_without_chaos: bool = False
    min_pass_rate: float = 1.0
    unsteady: bool = False
    also_fails_unmutated: bool = False


class MutationInfo(Record, frozen=True):
    """How a run's input came about.

    Args:
        type, operator: of the mutation; number: its place in the row of its type, from 1.
        original: the golden prompt.
        kind: whether it keeps what the user wants, or attacks.
        status: whether it could be sent to this kind of agent at all.
    """

    type: str
    operator: str
    original: str
    kind: Literal["benign", "attack"]
    status: Literal["sent", "not applicable"] = "sent"
    number: int = 0


class RunResult(Record, frozen=True):
    """One run of the agent.

    Args:
        id: e.g. `r-0007`.
        scenario, prompt, trial, input: which run this was.
        output, error: the answer, or why there is none (`KIND: MESSAGE`).
        latency_ms: from input to answer.
        planned: number of faults planned; `fired`, `masked`, `impossible` and `idle` list what happened to them (see
            `engine/accounting.py`). A fault that may fire often can be in more than one of the first two.
        calls: how many calls of each kind crossed the boundary (`llm`, `tool`, `mcp`, `http`).
        tape: path of the tape, relative to the report's folder where possible; empty if none was written.
        reproduce: the command line that does exactly this run again.
        seen: names of the tools (and unnamed hosts) the agent called, and of those that its model asked for or was told
            results of, whose own calls need not have crossed the boundary.
        canaries: what the injected instructions of this run give an obedient agent away by.
        remarks: what a reader of the tape should know, e.g. that a connection could not be looked into.
        tokens, cost: what its model calls were billed for, cost in US dollars by list prices; None where not known.
        mutation: where the input is no golden prompt as it stands in the config, how it came about.
        turns: of a conversation, its turns; `input` has them all, `output` is the last answer.
        refusals: its calls that the world, and no fault, refused for their rate.
    """

    id: str
    scenario: str
    prompt: int
    trial: int
    input: str
    output: str
    error: str | None
    latency_ms: float
    planned: int
    fired: tuple[Firing, ...]
    masked: tuple[Firing, ...]
    calls: dict[str, int]
    tape: str
    reproduce: str
    seen: tuple[str, ...] = ()
    canaries: tuple[Canary, ...] = ()
    remarks: tuple[str, ...] = ()
    impossible: tuple[Firing, ...] = ()
    idle: tuple[Firing, ...] = ()
    tokens: int | None = None
    cost: float | None = None
    mutation: MutationInfo | None = None
    turns: tuple[Turn, ...] = ()
    refusals: tuple[Refusal, ...] = ()


class FaultTally(Record, frozen=True):
    """What became of one planned fault, in how many of its scenario's runs.

    Args:
        fault: in one line.
        runs: of the scenario; the numbers that follow add up to it.
        fired: it took effect, at least once.
        masked: another fault kept it from taking effect.
        impossible: no run makes its call, with or without chaos.
        idle: its triggers did not agree, or it found nothing to change.
    """

    fault: str
    runs: int
    fired: int
    masked: int
    impossible: int
    idle: int


class ScenarioInfo(Record, frozen=True):
    """A scenario as planned: its name and each fault in one line, e.g. `tool/search=error:503`.

    `tallies` say what became of the faults, in the same order; empty before that is known.
    """

    name: str
    faults: tuple[str, ...] = ()
    tallies: tuple[FaultTally, ...] = ()


class InvariantInfo(Record, frozen=True):
    """An invariant as configured."""

    id: str
    type: str
    severity: Severity
    description: str = ""
    when: str = "always"


class PhaseResult(Record, frozen=True):
    """One phase of `ci`.

    Args:
        name: `mutation`, `chaos`, `contract` or `replay`.
        status: `done`; `interrupted`, `stopped` (by the budget): only in part; `not run`: something ended the command
            before.
        verdict, headline: of its report; `inconclusive` with the reason where there is none.
        weight: in the overall score, as configured.
        score: its own, on its own scale; None where there is none.
        report: path of its JSON report, and `page`: of its HTML page, relative to this report's folder where possible;
            empty where there is none.
    """

    name: str
    status: Literal["done", "interrupted", "stopped", "not run"]
    verdict: Outcome
    headline: str
    weight: float
    score: Score | None = None
    report: str = ""
    page: str = ""


class FaultAt(Record, frozen=True):
    """One fault of a finding.

    Args:
        site: the call it hits, or `kind/NAME` where it hits all of that name.
        mode: the fault's mode; fault: the same with its settings, as behind `=` in `--inject`.
    """

    site: str
    mode: str
    fault: str


class Finding(Record, frozen=True):
    """A minimal schedule that makes the agent break a promise: without any one of its faults it keeps it.

    Args:
        schedule: its faults, in order of happening.
        invariant, severity, reason: which promise, and how it was broken.
        prompt: 0-based index of the prompt.
        run: id of a run that shows it.
        reproduce: the command line that makes that run again.
        also: other schedules, each fault as in `--inject`, that break it in the same way: those that shrink to this
            one, and those that break the same calls after a retry.
        input: the input that it needs; None for the prompt as it stands.
    """

    schedule: tuple[FaultAt, ...]
    invariant: str
    severity: Severity
    reason: str
    prompt: int
    run: str
    reproduce: str
    also: tuple[tuple[str, ...], ...] = ()
    input: str | None = None


class CoverageResult(Record, frozen=True):
    """How much of what could be broken a search has broken.

    Args:
        sites: calls that were hit.
        singles: faults that took effect in a run that passed, or that are known to make one fail.
        pairs: pairs of faults, in the same way.
        of: how many there are of each, as far as runs have shown.
        complete: whether no single fault and no pair is left.
        saved: runs that did not have to be made, because what they would show was known.
    """

    sites: int
    singles: int
    pairs: int
    of: dict[str, int]
    complete: bool
    saved: int = 0


class Report(Record, frozen=True):
    """Everything a judging command found out.

    Args:
        command: e.g. `contract run`.
        verdict: `pass`, `fail` or `inconclusive`; exit_code: 0, 1, 3 or 130 to match.
        headline: one sentence that says why the verdict is what it is.
        seed: every random choice follows from it.
        started_at: UTC, ISO 8601; duration_ms: wall time.
        scores: the keys that apply of `robustness`, `chaos`, `contract`, `replay`, `overall`.
        cells, runs: in plan order, whatever order they finished in.
        scenarios, invariants, prompts: the plan's axes, in config order; prompts include probes, after the golden ones.
        notes: things a reader must know, e.g. that a fault's tool was never seen.
        interrupted: True when only what had finished is in here.
        phases: of `ci`, what it is made of; else none.
        planned: how many runs the plan has; stopped: the budget that ended it before all were made, in words.
        saved: how many trials were left out because the verdicts of their cells were decided.
        config, agent: path of the config file, and the agent in a few words.
        findings, coverage: of a search, what it found and how much it covered.
        blame: of `blame`, which step it was; load: of `load`, how each level went.
        pacing: how the starts of runs were held back, where they were, or where the world refused calls.
    """

    command: str
    verdict: Outcome
    exit_code: int
    headline: str
    seed: int
    started_at: str
    duration_ms: float
    scores: dict[str, Score]
    cells: tuple[CellResult, ...]
    runs: tuple[RunResult, ...]
    scenarios: tuple[ScenarioInfo, ...] = ()
    invariants: tuple[InvariantInfo, ...] = ()
    prompts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    config: str = ""
    agent: str = ""
    version: str = field(default="")
    phases: tuple[PhaseResult, ...] = ()
    planned: int = 0
    stopped: str = ""
    saved: int = 0
    findings: tuple[Finding, ...] = ()
    coverage: CoverageResult | None = None
    blame: Blaming | None = None
    load: Loaded | None = None
    pacing: Paced | None = None


class Planned(Record, frozen=True):
    """The plan is made: this many runs will follow.

    Args:
        command: as in `Report`.
        runs: how many there are to make.
        outline: the report as it would be if nothing more happened: the plan's axes, and runs taken over.
    """

    command: str
    runs: int
    outline: Report | None = None


class RunStarted(Record, frozen=True):
    """A run begins."""

    run: str
    scenario: str
    prompt: int


class RunFinished(Record, frozen=True):
    """A run ended; its cells may still change from pass to inconclusive when the whole scenario is known.

    A control run, which only explains the failures of others, has no cells.
    """

    run: RunResult
    cells: tuple[CellResult, ...] = ()


class Note(Record, frozen=True):
    """Something the user should know now."""

    text: str


class Progressed(Record, frozen=True):
    """How far a search has got, in a few words."""

    text: str


class Finished(Record, frozen=True):
    """The end, with everything."""

    report: Report


Event = Planned | RunStarted | RunFinished | Note | Progressed | Finished
Listener = Callable[[Event], None]
