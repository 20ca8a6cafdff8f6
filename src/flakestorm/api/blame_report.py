"""What blame found out, as a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from flakestorm.api.blame_case import Case, event_of
from flakestorm.api.carrying import Work, in_words
from flakestorm.core.verdict import Outcome
from flakestorm.engine.blame import Cause, Finding, Terms
from flakestorm.engine.blamed import BlamedEvent, BlamedStep, Blaming, Counted, Jump, Repair
from flakestorm.engine.events import CellResult, InvariantInfo, Report, ScenarioInfo
from flakestorm.engine.pacing import Paced
from flakestorm.errors import TapeError
from flakestorm.stats.intervals import wilson
from flakestorm.tape.model import Exchange
from flakestorm.tape.reader import Tape
from flakestorm.version import __version__

if TYPE_CHECKING:
    from flakestorm.api.blaming import Continued

__all__ = ["report_of"]

_EXIT: dict[str, tuple[Outcome, int]] = {
    "step": ("pass", 0),
    "no_single_step": ("fail", 1),
    "systemic": ("fail", 1),
    "cannot_tell": ("inconclusive", 3),
}
_HEALTHY_READ = 8  # tapes of continuations that are looked into for what the blamed call is answered otherwise


def report_of(
    work: Work,
    case: Case,
    finding: Finding | None,
    made: Sequence[Continued],
    terms: Terms,
    *,
    seed: int,
    started_at: str,
    took_ms: float,
    interrupted: bool,
    notes: Iterable[str],
    paced: Paced,
) -> Report:
    """The report.

    Args:
        work, case, terms: what was asked.
        finding: what came of it; None at the start.
        made: every continuation.
        seed, started_at, took_ms, interrupted: as in `Report`.
        notes: what a reader should know.
        paced: how the starts of continuations were held back.
    """
    found = _blaming(case, finding, made, terms)
    verdict, code = _EXIT[found.conclusion]
    ordered = sorted(made, key=lambda each: (each.k, each.judged.run.id))
    rule = case.invariant
    return Report(
        "blame", verdict, 130 if interrupted else code, headline(found), seed, started_at, took_ms, {},
        tuple(_cell(each, rule.severity, str(rule.id)) for each in ordered),
        tuple(each.judged.run for each in ordered),
        scenarios=tuple(ScenarioInfo(name) for name in dict.fromkeys(each.judged.run.scenario for each in ordered)),
        invariants=(InvariantInfo(str(rule.id), rule.type, rule.severity, rule.description or "", "always"),),
        prompts=(case.text,), notes=tuple(notes), interrupted=interrupted, config=str(work.path),
        agent=in_words(work.config), version=__version__, planned=terms.budget, blame=found, pacing=paced.known,
    )  # fmt: skip


def headline(found: Blaming) -> str:
    """The conclusion in one sentence."""
    step = found.named
    if step is not None:
        jump, event = step.jump, step.event
        fault = event.fault or event.looks_like
        what = f"{event.kind}{f' ({fault})' if fault else ''}"
        more = f"; and {', '.join(each.event.site for each in found.steps[1:])}" if len(found.steps) > 1 else ""
        return (
            f"{event.site}, {what}: it makes the failure likelier by {jump.value:.0%} "
            f"[{jump.low:.0%}, {jump.high:.0%}]{more}"
        )
    title = {"no_single_step": "no single step", "systemic": "systemic", "cannot_tell": "cannot tell"}
    return f"{title[found.conclusion]}: {found.why}"


def _cell(each: Continued, severity: object, rule: str) -> CellResult:
    run = each.judged.run
    outcome: Outcome = "inconclusive" if each.seen.failed is None else "fail" if each.seen.failed else "pass"
    reason = each.why or next((verdict.reason for _, verdict in each.judged.verdicts), "")
    return CellResult(run.scenario, rule, severity, 0, run.trial, outcome, reason, run.id)  # type: ignore[arg-type]


def _blaming(case: Case, finding: Finding | None, made: Sequence[Continued], terms: Terms) -> Blaming:
    base = Blaming(
        "cannot_tell", "nothing was run yet", str(case.invariant.id), str(case.tape), case.digest, case.run,
        case.events, budget=terms.budget, eps=terms.eps,
    )  # fmt: skip
    if finding is None:
        return base
    why = finding.why
    if finding.conclusion == "cannot_tell":
        told = next((each.why for each in made if each.why), "")
        why = f"{why}; {told}" if told else why
    return replace(
        base,
        conclusion=finding.conclusion,
        why=why,
        steps=tuple(_step(case, cause, made) for cause in finding.causes),
        curve=tuple((p.k, round(p.value, 4), round(p.interval[0], 4), round(p.interval[1], 4)) for p in finding.curve),
        counts=tuple((p.k, p.failed, p.judged) for p in finding.curve),
        continuations=len(made),
        unjudged=sum(each.seen.failed is None for each in made),
        steady=finding.steady,
        within=finding.within,
    )


def _step(case: Case, cause: Cause, made: Sequence[Continued]) -> BlamedStep:
    repairs = [_rate("resample", cause.before.judged - cause.before.failed, cause.before.judged)]
    tried: dict[str, list[bool]] = {}
    for each in made:
        if each.repair and each.k == cause.k - 1 and each.seen.failed is not None:
            tried.setdefault(each.repair, []).append(not each.seen.failed)
    repairs += [_rate(how, sum(went), len(went)) for how, went in tried.items()]
    jump = cause.jump
    return BlamedStep(
        _event(case, cause.k, made),
        Jump(round(jump.value, 4), round(jump.low, 4), round(jump.high, 4)),
        Counted(cause.before.failed, cause.before.judged),
        Counted(cause.after.failed, cause.after.judged),
        tuple(repairs),
    )


def _event(case: Case, k: int, made: Sequence[Continued]) -> BlamedEvent:
    """The blamed event, looked at beside what the same call is answered in runs that went well."""
    event = case.events[k - 1]
    if event.kind == "input":
        return event
    recorded = case.exchanges[k - 1 - case.offset]
    healthy: list[Exchange] = []
    for each in made:
        if each.k == k - 1 and each.seen.failed is False and len(healthy) < _HEALTHY_READ:
            with suppress(TapeError, OSError):
                healthy += [other for other in Tape.open(each.judged.run.tape) if other.site == recorded.site]
    return event_of(k, recorded, healthy)


def _rate(how: str, passed: int, judged: int) -> Repair:
    low, high = wilson(passed, judged) or (0.0, 1.0)
    return Repair(how, round(passed / judged, 4) if judged else 0.0, round(low, 4), round(high, 4), judged)
