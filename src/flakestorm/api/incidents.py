"""Replaying sessions: incidents against the contract that the agent must now meet.

Each session is a scenario of its own, with its own input and rules; its recorded tool replies stand in the world's
place (`Hooks.within`), and what came of them decides whether a pass may stand.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from flakestorm.api.carrying import Work, carry_out
from flakestorm.api.exporting import TOP_LEVEL
from flakestorm.api.options import Options
from flakestorm.config import read
from flakestorm.config.model import Config, Contract, Invariant, Scenario
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import needs_baseline
from flakestorm.core.conversation import prompt_of
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.registry import nearest
from flakestorm.engine.events import Note, Report
from flakestorm.engine.hooks import Hooks, Inside
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Plan, Trial, pair_plan
from flakestorm.engine.runner import Runner
from flakestorm.engine.score import Gate
from flakestorm.errors import ConfigError, Misuse
from flakestorm.faults.planned import parse_injection, scenario_with
from flakestorm.sessions.files import Incident, in_config, read_sessions
from flakestorm.sessions.judging import reviewed, viewed
from flakestorm.sessions.serving import Serving

__all__ = ["anew", "contract_name", "incidents_at", "plan_of", "replay"]


def contract_name(config: Config) -> str:
    """The contract that judges what names none."""
    return config.contract.name if config.contract is not None else "default"


def incidents_at(config: Config, path: Path | None, *, offline: bool = False) -> list[Incident]:
    """The sessions at a path, or, without one, those of the config's `replays`.

    Args:
        config: the configuration.
        path: a session file, a tape, a folder of them, or the id of a session in the config.
        offline: whether to leave out the sources that have to be fetched or read first.

    Raises:
        ConfigError: there is none.
        WorldFailed: a source cannot be reached.
    """
    name = contract_name(config)
    if path is not None and path.exists():
        return read_sessions(path, contract=name)
    configured = in_config(config, contract=name)
    if config.replays.sources and not offline:
        from flakestorm.api.sources import from_sources  # few configs have them

        configured += from_sources(config, contract=name)
    if path is None:
        return configured
    named = [incident for incident in configured if incident.session.id == str(path)]
    return named or read_sessions(path, contract=name)


def replay(work: Work, incidents: Sequence[Incident], options: Options) -> Report:
    """Replay these sessions and judge each by its contract.

    Raises:
        ConfigError: a session names a contract that there is not.
        Misuse: there is no session, two have one id, or a rule is not available.
    """
    plan, notes = plan_of(work.config, incidents, trials=options.trials)
    if options.resume is not None:
        options = anew(options)
        notes.append("what came of recorded replies is known while a session runs only, so all sessions were run again")
    stages = _Stages(work, list(incidents), len(work.config.golden_prompts))

    hooks = Hooks(within=stages.within, viewed=stages.viewed, reviewed=stages.reviewed)

    def tailor(runner: Runner) -> None:
        runner.reproduce = lambda trial, _schedule, _ledger: stages.reproduce(trial)
        stages.known = (*work.config.boundary.tools, *runner.boundary.tools)
        for note in notes:
            options.listener(Note(note))

    return carry_out(work, plan, Gate("replay"), options, hooks=hooks, tailor=tailor)


def anew(options: Options) -> Options:
    """The same options, to do all again by the seed of the report that was to be resumed."""
    report = options.resume
    if isinstance(report, Path):
        from flakestorm.reports.document import read_json  # only what resumes reads reports

        report = read_json(report)
    seed = options.seed if report is None or options.seed is not None else report.seed
    return dataclasses.replace(options, resume=None, seed=seed)


def plan_of(config: Config, incidents: Sequence[Incident], *, trials: int | None = None) -> tuple[Plan, list[str]]:
    """What `replay` would run, and what is to be said about it.

    Raises:
        ConfigError, Misuse: as `replay`.
    """
    if not incidents:
        raise Misuse(
            "there is no session to replay: add 'replays.sessions' to the config, or name a session file, a folder of "
            "them or a tape: flakestorm replay run PATH"
        )
    places: dict[str, Incident] = {}
    pairs: list[tuple[Scenario, str, Sequence[Invariant]]] = []
    left_out: dict[str, None] = {}
    for incident in incidents:
        session = incident.session
        if session.id in places:
            where = " and ".join(str(each.file or "the config") for each in (places[session.id], incident))
            said = f"two sessions have the id {session.id!r} ({where}); give each its own"
            raise ConfigError(said, file=incident.file, key=f"{incident.at}id")
        places[session.id] = incident
        rules, comparing = _rules(config, incident)
        left_out.update(dict.fromkeys(comparing))
        pairs.append((_scenario(incident), prompt_of(session.input), rules))
    wanted = trials or (config.contract.trials if config.contract else 1)
    plan = pair_plan("replay run", pairs, prompts=config.golden_prompts, trials=wanted)
    notes = [f"{name} compares with a run without chaos, which a replay has not, and was left out" for name in left_out]
    return plan, notes


def _scenario(incident: Incident) -> Scenario:
    session = incident.session
    try:
        faults = [parse_injection(text).spec for text in session.faults]
    except Misuse as error:
        raise ConfigError(f"session {session.id}: {error}", file=incident.file, key=f"{incident.at}faults") from error
    return scenario_with(session.id, faults)


def _rules(config: Config, incident: Incident) -> tuple[list[Invariant], list[str]]:
    """The rules that judge a session, and the ids of those that a replay cannot judge."""
    contract = _contract(config, incident)
    own = contract is config.contract
    rules = [i for i in contract.invariants or config.invariants if not i.probes]
    if not own and contract.name != TOP_LEVEL:
        rules = [replace(i, id=f"{i.id} ({contract.name})").at(i.origin) for i in rules]
    judging = [i for i in rules if not needs_baseline(i)]
    if not judging:
        raise ConfigError(
            f"session {incident.session.id}: the contract {contract.name!r} has no invariant that judges a session "
            "(those with probes, and those that compare with a run without chaos, do not)",
            file=incident.file,
            key=f"{incident.at}contract",
        )
    return judging, [str(i.id) for i in rules if needs_baseline(i)]


def _contract(config: Config, incident: Incident) -> Contract:
    name, known = incident.session.contract, config.contract
    if name == TOP_LEVEL and config.invariants:
        return Contract(name=TOP_LEVEL, invariants=config.invariants)
    if known is not None and name == known.name:
        return known
    file = incident.folder / name
    if name.lower().endswith((".yaml", ".yml")) and file.is_file():
        return _own(config, file, read(file, Contract))
    if known is None:
        guess = "the config has no contract; add one with that name"
    elif name == "default":
        guess = f"the session names none; say contract: {known.name}"
    else:
        close = nearest(name, [known.name])
        guess = f"did you mean {close!r}?" if close else f"the config's is called {known.name!r}"
    said = f"session {incident.session.id}: there is no contract {name!r}: {guess}"
    raise ConfigError(said, file=incident.file, key=f"{incident.at}contract")


def _own(config: Config, file: Path, contract: Contract) -> Contract:
    """A contract that a session names, which may have functions run only where it is the user's own: a session may be a
    stranger's, and so may what lies beside it."""
    runs = next((i for i in contract.invariants if i.function is not None), None)
    if runs is not None and not file.resolve().is_relative_to(Path(config.folder).resolve()):
        raise ConfigError(
            f"{runs.id} would have {runs.function!r} run, and a contract that a session names may do so only within "
            "the folder of your config; put it there if you trust whoever wrote it",
            file=file,
            key="invariants",
        )
    return contract


@dataclass(slots=True)
class _Stages:
    """The recorded replies at work, by run."""

    work: Work
    incidents: list[Incident]
    first: int
    known: Sequence[str] = ()
    _serving: dict[str, Serving] = field(default_factory=dict)

    def _incident(self, trial: Trial) -> Incident:
        return self.incidents[trial.prompt - self.first]

    def _of(self, trial: Trial) -> Serving:
        if trial.run not in self._serving:
            self._serving[trial.run] = Serving(self._incident(trial).session.tool_responses)
        return self._serving[trial.run]

    def within(self, trial: Trial, _: Inside) -> Sequence[Interceptor]:
        return (self._of(trial),)

    def viewed(self, trial: Trial, view: RunView) -> RunView:
        return viewed(view, self._of(trial))

    def reviewed(self, judged: Judged) -> Judged:
        serving = self._of(judged.trial)
        del self._serving[judged.trial.run]
        return reviewed(judged, serving, self.known)

    def reproduce(self, trial: Trial) -> str:
        """The command line that replays this session again."""
        incident = self._incident(trial)
        what = str(incident.file) if incident.file is not None else incident.session.id
        if self.work.again:  # the demo has one incident
            return shlex.join([*self.work.again, "--replay"])
        return shlex.join(["flakestorm", "replay", "run", "-c", str(self.work.path), what])
