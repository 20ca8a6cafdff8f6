"""The run that blame is about: its events, the rule it breaks, and the agent to run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace as with_

from flakestorm.api.carrying import Work
from flakestorm.api.forked import fork_of
from flakestorm.api.replaying import load_tape
from flakestorm.api.trusting import Approve, demand
from flakestorm.config.model import Agent, Config, Invariant
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import judge
from flakestorm.core.answer import AgentError
from flakestorm.core.draws import Draws
from flakestorm.core.ledger import Canary, Firing, Ledger
from flakestorm.core.verdict import Verdict
from flakestorm.engine.blamed import BlamedEvent, EventKind
from flakestorm.engine.events import CellResult, Report, RunResult
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import BASELINE, Trial
from flakestorm.errors import Misuse
from flakestorm.tape.fork import Fork
from flakestorm.tape.match import Mode
from flakestorm.tape.model import Exchange
from flakestorm.tape.origin import Named, named_by
from flakestorm.tape.reader import Tape
from flakestorm.tape.symptoms import broken, looks_like

__all__ = ["Case", "agent_of", "case_of", "failing_run"]

_LONGEST_MS = 300_000
_SEVERITY = {"critical": 0, "high": 1, "medium": 2, "low": 3}
_KINDS = ("unreachable", "timeout", "http", "unreadable", "crash", "error")


@dataclass(frozen=True)
class Case:
    """A recorded run that fails.

    Args:
        tape: its file; digest: of what it says.
        text: what the agent was given; original: what it should have been given, where that was something else.
        exchanges: what was recorded, in order of arrival.
        invariant: the rule that it breaks; reason: how.
        draws: what its clock and draws followed from; None where they were real.
        fired: the faults that fired in it.
        canaries: what an obedient agent gives itself away by.
        run: its id in a report.
        notes: what a reader should know.
    """

    tape: Path
    digest: str
    text: str
    original: str | None
    exchanges: Sequence[Exchange]
    invariant: Invariant
    reason: str
    draws: Draws | None = None
    fired: tuple[Firing, ...] = ()
    canaries: tuple[Canary, ...] = ()
    run: str = ""
    notes: tuple[str, ...] = ()
    mode: Mode = "renamed"
    fork: Fork = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fork", fork_of(Tape.open(self.tape), self.mode, exchanges=self.exchanges))

    @property
    def offset(self) -> int:
        """How many events come before the first exchange: the input is one where it was changed."""
        return 0 if self.original is None else 1

    def input_at(self, k: int) -> str:
        """What the agent is given with the first k events as recorded."""
        return self.original if self.original is not None and k == 0 else self.text

    @cached_property
    def events(self) -> tuple[BlamedEvent, ...]:
        """What happened, in order."""
        first = (BlamedEvent(1, "agent/input#1", "input"),) if self.original is not None else ()
        return (*first, *(event_of(n, each) for n, each in enumerate(self.exchanges, self.offset + 1)))

    def judged_again(self, run: RunResult, cell: CellResult) -> Judged:
        """A continuation as an earlier report has it."""
        trial = Trial(run.id, replace_name(run.scenario), run.prompt, run.input, run.trial, (self.invariant,))
        return Judged(trial, run, RunView(run.input), ((self.invariant, Verdict(cell.verdict, cell.reason)),))


def replace_name(name: str) -> Any:
    return with_(BASELINE, name=name)


def event_of(k: int, exchange: Exchange, healthy: Sequence[Exchange] = ()) -> BlamedEvent:
    """What was decided in this exchange, and by whom."""
    fired = next((firing for firing in exchange.faults if exchange.site in (firing.site, firing.via)), None)
    like = looks_like(exchange, healthy)
    kind: EventKind = "model" if exchange.kind == "llm" else "tool"
    if fired is not None or broken(like):
        kind = "fault"
    site = exchange.site if fired is None else fired.site
    return BlamedEvent(k, str(site), kind, "" if fired is None else fired.mode, like)


def agent_of(work: Work | None, tape: Path, argv: Sequence[str] = (), *, approve: Approve | None = None) -> Work:
    """Whose agent is run again: the command that the tape names, or that is given; else the project's.

    Args:
        work: the project, where there is one.
        tape: the recorded run.
        argv: a command in the place of the recorded one.
        approve: as for `trusting.demand`.

    Raises:
        Misuse: nothing is known that could be run again, or it may not be.
    """
    loaded = load_tape(tape)
    demand(loaded.tape, argv=argv, config=None if work is None else work.config, approve=approve)
    named = named_by(loaded.tape) or Named()
    words = list(argv or named.argv)
    if not words:
        if work is None:
            if not named.config:
                raise Misuse(f"{tape} was given an input; name the config of its agent with -c")
            from flakestorm.api.project import load

            return load(named.config)
        return work
    cwd = str(Path.cwd() if argv else Path(named.cwd))
    agent = Agent.of({"type": "command", "start": words, "cwd": cwd, "timeout": _LONGEST_MS})
    if work is None:
        return _Rerun(Config.of({"version": "2.0", "agent": _bare(agent), "golden_prompts": [""]}).at("."), tape)
    own = work.config.agent
    agent = with_(agent, env=own.env, mcp=own.mcp)
    return _Rerun(with_(work.config, agent=agent).at(work.config.folder), work.path)


def _bare(agent: Agent) -> dict[str, Any]:
    return {"type": "command", "start": agent.start, "cwd": agent.cwd, "timeout": agent.timeout}


@dataclass(frozen=True, slots=True)
class _Rerun:
    """A project whose agent is a recorded command."""

    config: Config
    path: Path
    again: tuple[str, ...] = ()


def failing_run(report: Report, name: str = "") -> tuple[RunResult, tuple[str, ...]]:
    """The run of a report that is meant, and the ids of the rules that it breaks.

    Args:
        report: any.
        name: the run's id; the only one that fails where empty.

    Raises:
        Misuse: there is none, or more than one.
    """
    failing: dict[str, list[str]] = {}
    for cell in report.cells:
        if cell.verdict == "fail":
            failing.setdefault(cell.run, []).append(cell.invariant)
    if not name and len(failing) == 1:
        name = next(iter(failing))
    if not name:
        some = ", ".join(list(failing)[:10])
        raise Misuse(
            f"{len(failing)} runs of the report fail ({some}); say which: FILE#RUN" if failing else "no run of it fails"
        )
    run = next((run for run in report.runs if run.id == name), None)
    if run is None:
        raise Misuse(f"the report has no run {name}; it has {', '.join(run.id for run in report.runs[:10])}")
    if not run.tape:
        raise Misuse(f"the run {name} has no tape, so there is nothing to play again")
    return run, tuple(failing.get(name, ()))


def case_of(
    work: Work,
    tape: Path,
    *,
    run: RunResult | None = None,
    breaks: Sequence[str] = (),
    invariant: str | None = None,
    healthy: str | None = None,
    mode: Mode = "renamed",
) -> Case:
    """The case of a recorded run.

    Args:
        work: whose rules judge it.
        tape: the run.
        run: as a report has it; breaks: the rules that it breaks, by that report.
        invariant: the rule to go by.
        healthy: the input that the agent should have been given.
        mode: how requests are matched.

    Raises:
        Misuse: the run breaks no rule, or not this one.
        TapeDamaged: the tape was edited, cut short or added to.
    """
    loaded = load_tape(tape, mode=mode)
    exchanges = loaded.tape.exchanges()
    header, footer = loaded.tape.header, loaded.footer
    text = loaded.tape.input
    if text is None:
        text = (footer.stdin or b"").decode("utf-8", "replace")
    original = header.get("original")
    other = healthy if healthy is not None else original if isinstance(original, str) else None
    if not exchanges and other in (None, text):
        raise Misuse(f"{tape} holds no exchange, so no step of it can be blamed; record a run that makes calls")
    view = RunView(
        input=text,
        output=footer.output,
        error=_error(footer.error),
        scenario=str(header.get("scenario") or ""),
        ledger=Ledger(
            fired=[firing for exchange in exchanges for firing in exchange.faults],
            canaries=list(() if run is None else run.canaries),
        ),
        chaos=any(exchange.faults for exchange in exchanges),
        transient=frozenset(firing.fault for exchange in exchanges for firing in exchange.faults),
        exchanges=exchanges,
        visible=tuple(work.config.boundary.tools),
        latency_ms=0.0 if run is None else run.latency_ms,
    )
    rule, reason, notes = _broken(rules_of(work.config, view), view, breaks, invariant, tape)
    return Case(
        tape, footer.digest, text, None if other == text else other, exchanges, rule, reason, Draws.of(header),
        tuple(view.ledger.fired), () if run is None else run.canaries, "" if run is None else run.id, tuple(notes),
        mode,
    )  # fmt: skip


def rules_of(config: Config, view: RunView) -> list[Invariant]:
    """What a run is judged by; where nothing is configured, whether it came to its end."""
    own = config.contract.invariants if config.contract else []
    rules = {str(each.id): each for each in (*config.invariants, *own)}
    if rules:
        return list(rules.values())
    return [Invariant(type="completes", id="completes", severity="critical")] if view.error is not None else []


def _broken(
    rules: Iterable[Invariant], view: RunView, breaks: Sequence[str], wanted: str | None, tape: Path
) -> tuple[Invariant, str, list[str]]:
    """The rule to go by, what is wrong, and what there is to say about the choice."""
    known = {str(rule.id): rule for rule in rules}
    if wanted is not None and wanted not in known:
        raise Misuse(f"there is no invariant {wanted!r}; there are {', '.join(known) or 'none'}")
    if not known:
        raise Misuse(f"nothing says how {tape} failed: give a config with its rules (-c flakestorm.yaml)")
    found: list[tuple[Invariant, str]] = []
    said: list[str] = []
    for name, rule in known.items():
        if wanted not in (None, name):
            continue
        verdict = judge(with_(rule, when="always"), view)
        if name in breaks or (verdict is not None and verdict.outcome == "fail" and not breaks):
            found.append((rule, "" if verdict is None else verdict.reason))
        elif verdict is not None:
            said.append(f"{name}: {verdict.outcome}, {verdict.reason}")
    if not found:
        shown = "; ".join(said[:5]) or "none applies"
        raise Misuse(f"the recorded run does not fail, so there is nothing to blame a step for ({shown})")
    found.sort(key=lambda each: _SEVERITY[each[0].severity])
    rule, reason = found[0]
    others = ", ".join(str(each.id) for each, _ in found[1:])
    notes = [f"the run also breaks {others}; --invariant chooses the rule to go by"] if others else []
    return rule, reason, notes


def _error(text: str | None) -> AgentError | None:
    if text is None:
        return None
    kind, _, message = text.partition(": ")
    return AgentError(kind, message) if kind in _KINDS else AgentError("crash", text)  # type: ignore[arg-type]
