"""Going on after an interruption: finished runs are taken over from the earlier report and judged again.

Nothing is believed that can be computed: verdicts, `when` and matrix rules are worked out anew from output, tape and
ledger, so a resumed report is the report an uninterrupted command would have written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flakestorm.config.model import Scenario
from flakestorm.contracts.base import RunView, asked_of_model
from flakestorm.contracts.matrix import measured_by
from flakestorm.core.answer import AgentError
from flakestorm.core.ledger import Ledger
from flakestorm.core.verdict import Verdict
from flakestorm.engine.accounting import DECLINED, NOT_MADE, TOO_FEW, reach
from flakestorm.engine.events import Report, RunResult
from flakestorm.engine.judged import Judged, judged, refused
from flakestorm.engine.pacing import limited, starved
from flakestorm.engine.plan import BASELINE, Plan, Trial
from flakestorm.engine.ports import World
from flakestorm.engine.toolmaze import scenarios_for, tools_in
from flakestorm.errors import Misuse
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.model import Exchange
from flakestorm.tape.redact import SECRET
from flakestorm.tape.tools import calls_of, tool_results_of

__all__ = ["take_over", "unseen", "view_of"]

_KINDS = ("unreachable", "timeout", "http", "unreadable", "crash", "error")


def take_over(
    plan: Plan,
    report: Report,
    exchanges_of: Callable[[RunResult], Sequence[Exchange]],
    world: World,
    *,
    agent: str = "",
    visible: Sequence[str] = (),
    elsewhere: bool = False,
    hidden: Callable[[str], str] = str,
    viewed: Callable[[RunView], RunView] = lambda view: view,
) -> tuple[Judged, ...]:
    """The runs of an earlier report that this plan need not make again.

    A run whose agent could not be reached is made again, and so is one whose agent never got through to its world: they
    say nothing about the agent.

    Args:
        plan: what is to be run now.
        report: the earlier one.
        exchanges_of: reads a run's tape.
        world: limits how long judging may take.
        agent: the agent in a few words, as `Report.agent` has it.
        visible: as in `RunView`.
        elsewhere: as in `Runner`.
        hidden: takes secrets out of a prompt, as it was done for the report.
        viewed: gives a run as its invariants are to see it.

    Raises:
        Misuse: the report is of another agent or of another plan: other scenarios, or other prompts.
    """
    if report.agent != agent:
        raise Misuse(
            f"the report to resume was made with another agent ({_shown(report.agent)}; now: {_shown(agent)}); "
            "run the command without --resume"
        )
    made = {(run.scenario, run.prompt, run.trial): run for run in report.runs}
    plan = _extended(plan, made, exchanges_of)
    planned = [(s.name, Schedule.of(s).lines) for s in plan.scenarios]
    prompts = tuple(map(hidden, plan.prompts))
    reported = [(info.name, info.faults) for info in report.scenarios]
    if reported != planned or report.prompts != prompts:
        changed = "scenarios" if reported != planned else "prompts"
        raise Misuse(
            f"the report to resume is of another plan: its {changed} are not those of the config; "
            "run the command without --resume"
        )
    found = [(trial, made.get(_cell(trial))) for trial in plan.runs]
    names = {scenario.name for scenario in plan.scenarios}
    known = {trial.run for trial, run in found if run is not None and run.id == trial.run}
    if any(run.scenario in names and run.id not in known for run in report.runs):
        raise Misuse("the report to resume was made with other --trials; resume it with the same")
    baselines: dict[int, str] = {}
    for run in report.runs:
        if not run.planned and run.error is None and run.mutation is None:
            baselines.setdefault(run.prompt, run.output)
    taken = (
        judged(
            trial,
            run,
            viewed(view_of(trial, run, exchanges_of(run), visible, elsewhere, baselines.get(trial.prompt))),
            world,
            known=_opinions(trial, run, report),
        )
        for trial, run in found
        if run is not None and not (run.error or "").startswith("unreachable") and _same_input(trial, run)
    )
    kept = tuple(found for found in taken if not found.view.starved)
    if not plan.users:
        return kept
    from flakestorm.engine.load import whole_levels  # few commands put load on an agent

    whole = {BASELINE.name, *whole_levels(plan, report.load, {found.run.id for found in kept})}
    return tuple(found for found in kept if found.trial.scenario.name in whole)


def unseen(view: RunView) -> RunView:
    """A run of an instance that others shared: nobody can tell its calls from theirs."""
    from flakestorm.engine.load import Untold

    return replace(view, exchanges=Untold())


def _cell(trial: Trial) -> tuple[str, int, int]:
    return trial.scenario.name, trial.prompt, trial.number


def _same_input(trial: Trial, run: RunResult) -> bool:
    """Whether the run was of the mutation that is planned now; one that was not applicable is no run."""
    mutation, made = trial.mutation, run.mutation
    if mutation is None or made is None:
        return mutation is None and made is None
    same = (mutation.operator, mutation.original, mutation.number) == (made.operator, made.original, made.number)
    return same and made.status == "sent" and (mutation.number > 0 or trial.scenario.chaos or run.input == trial.text)


def _extended(
    plan: Plan,
    made: Mapping[tuple[str, int, int], RunResult],
    exchanges_of: Callable[[RunResult], Sequence[Exchange]],
) -> Plan:
    """The plan with the scenarios that the report's runs without chaos have led to, if all of those were made."""
    calm = [made[_cell(trial)] for trial in plan.baseline if _cell(trial) in made]
    if plan.generate is None or len(calm) < len(plan.baseline):
        return plan
    tapes = [exchanges_of(run) for run in calm]
    tools = tools_in((calls_of(tape), tool_results_of(tape)) for tape in tapes)
    return plan.extended(scenarios_for(tools, taken=[s.name for s in plan.scenarios]))


def _opinions(trial: Trial, run: RunResult, report: Report) -> dict[str, Verdict]:
    """What is not worked out again: a model's opinions and measures, and, where the agent said a secret, which is not
    kept, all."""
    told = SECRET in run.output or SECRET in run.input or SECRET in (run.error or "")
    asked = {str(i.id) for i in trial.invariants if told or i.type in asked_of_model or measured_by(i)}
    return {
        cell.invariant: Verdict(cell.verdict, cell.reason)
        for cell in report.cells
        if cell.run == run.id and cell.invariant in asked
    }


def _shown(agent: str) -> str:
    return repr(agent if len(agent) <= 200 else f"{agent[:199]}…") if agent else "none named"


def view_of(
    trial: Trial,
    run: RunResult,
    exchanges: Sequence[Exchange],
    visible: Sequence[str],
    elsewhere: bool,
    baseline: str | None,
) -> RunView:
    """A run of an earlier report, as invariants see it; the arguments are those of `take_over`, of one run."""
    return RunView(
        input=run.input,
        output=run.output,
        error=_error(run.error),
        latency_ms=run.turns[-1].latency_ms if run.turns else run.latency_ms,
        scenario=run.scenario,
        chaos=trial.scenario.chaos,
        ledger=_ledger(trial.scenario, run, exchanges),
        exchanges=exchanges,
        visible=visible,
        baseline=baseline,
        transient=Schedule.of(trial.scenario).transient,
        held=bool(exchanges) or not elsewhere,
        input_kind="benign" if trial.mutation is None else trial.mutation.kind,
        refused=refused(trial, _error(run.error)),
        mutated=trial.mutation is not None,
        turns=run.turns,
        limited=limited(run.refusals),
        starved=starved(run.refusals, exchanges, _error(run.error)),
    )


def _ledger(scenario: Scenario, run: RunResult, exchanges: Sequence[Exchange]) -> Ledger:
    schedule = Schedule.of(scenario)
    ledger = Ledger(
        fired=list(run.fired),
        masked=[firing for firing in run.masked if not firing.detail.endswith(NOT_MADE)],
        idle=[firing for firing in run.idle if firing.detail != DECLINED and not firing.detail.endswith(TOO_FEW)],
        canaries=list(run.canaries),
        matched=reach(schedule, calls_of(exchanges), tool_results_of(exchanges)),
    )
    schedule.enter(ledger)
    return ledger


def _error(text: str | None) -> AgentError | None:
    if text is None:
        return None
    kind, _, message = text.partition(": ")
    return AgentError(kind, message) if kind in _KINDS else AgentError("error", text)  # type: ignore[arg-type]
