"""Going on after an interruption: finished runs are taken over from the earlier report and judged again.

Nothing is believed that can be computed: verdicts, `when` and matrix rules are worked out anew from output, tape and
ledger, so a resumed report is the report an uninterrupted command would have written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flakestorm.config.model import Scenario
from flakestorm.contracts.base import RunView
from flakestorm.core.answer import AgentError
from flakestorm.core.call import Call
from flakestorm.core.ledger import Ledger
from flakestorm.core.site import Sites
from flakestorm.engine.events import Report, RunResult, ScenarioInfo
from flakestorm.engine.plan import Plan, Trial
from flakestorm.engine.ports import World
from flakestorm.engine.runner import Judged, judged
from flakestorm.errors import Misuse
from flakestorm.faults.schedule import Schedule
from flakestorm.faults.staging import matcher, result_matcher
from flakestorm.tape.model import Exchange
from flakestorm.tape.tools import tool_results_of

__all__ = ["take_over"]

_KINDS = ("unreachable", "timeout", "http", "unreadable", "crash", "error")


def take_over(
    plan: Plan,
    report: Report,
    exchanges_of: Callable[[RunResult], Sequence[Exchange]],
    world: World,
    *,
    agent: str = "",
    visible: Sequence[str] = (),
) -> tuple[Judged, ...]:
    """The runs of an earlier report that this plan need not make again.

    A run whose agent could not be reached is made again: it says nothing about the agent.

    Args:
        plan: what is to be run now.
        report: the earlier one.
        exchanges_of: reads a run's tape.
        world: limits how long judging may take.
        agent: the agent in a few words, as `Report.agent` has it.
        visible: as in `RunView`.

    Raises:
        Misuse: the report is of another agent or of another plan: other scenarios, or other prompts.
    """
    if report.agent != agent:
        raise Misuse(
            f"the report to resume was made with another agent ({_shown(report.agent)}; now: {_shown(agent)}); "
            "run the command without --resume"
        )
    planned = tuple(ScenarioInfo(s.name, Schedule.of(s).describe()) for s in plan.scenarios)
    if report.scenarios != planned or report.prompts != plan.prompts:
        changed = "scenarios" if report.scenarios != planned else "prompts"
        raise Misuse(
            f"the report to resume is of another plan: its {changed} are not those of the config; "
            "run the command without --resume"
        )
    made = {(run.scenario, run.prompt, run.trial): run for run in report.runs}
    found = [(trial, made.get((trial.scenario.name, trial.prompt, trial.number))) for trial in plan.trials]
    names = {scenario.name for scenario in plan.scenarios}
    known = {trial.run for trial, run in found if run is not None and run.id == trial.run}
    if any(run.scenario in names and run.id not in known for run in report.runs):
        raise Misuse("the report to resume was made with other --trials; resume it with the same")
    return tuple(
        judged(trial, run, _view(trial, run, exchanges_of(run), visible), world)
        for trial, run in found
        if run is not None and not (run.error or "").startswith("unreachable")
    )


def _shown(agent: str) -> str:
    return repr(agent if len(agent) <= 200 else f"{agent[:199]}…") if agent else "none named"


def _view(trial: Trial, run: RunResult, exchanges: Sequence[Exchange], visible: Sequence[str]) -> RunView:
    return RunView(
        input=run.input,
        output=run.output,
        error=_error(run.error),
        latency_ms=run.latency_ms,
        scenario=run.scenario,
        chaos=trial.scenario.chaos,
        ledger=_ledger(trial.scenario, run, exchanges),
        exchanges=exchanges,
        visible=visible,
    )


def _ledger(scenario: Scenario, run: RunResult, exchanges: Sequence[Exchange]) -> Ledger:
    schedule = Schedule.of(scenario)
    calls = [Call(x.method, x.url, kind=x.kind, name=x.name, wire=x.wire, site=x.site) for x in exchanges]
    return Ledger(
        planned=len(schedule.planned),
        tools_planned=sum(planned.family == "tool" for planned in schedule.planned),
        llms_planned=sum(planned.family == "llm" for planned in schedule.planned),
        fired=list(run.fired),
        masked=list(run.masked),
        canaries=list(run.canaries),
        matched={planned.index for planned in schedule.planned if any(map(matcher(planned), calls))}
        | _on_results(schedule, calls, tool_results_of(exchanges)),
    )


def _on_results(schedule: Schedule, calls: Sequence[Call], results: Sequence[str]) -> set[int]:
    """The faults for which there was a result: of any tool where they are for results only, else of one whose calls
    were not seen."""
    crossed = {call.name for call in calls if call.kind in ("tool", "mcp")}
    met = Sites()
    sites = [met.next("tool", name) for name in results]
    return {
        planned.index
        for planned in schedule.planned
        if (matches := result_matcher(planned)) is not None
        and any(matches(site) and (planned.on_results or site.name not in crossed) for site in sites)
    }


def _error(text: str | None) -> AgentError | None:
    if text is None:
        return None
    kind, _, message = text.partition(": ")
    return AgentError(kind, message) if kind in _KINDS else AgentError("error", text)  # type: ignore[arg-type]
