"""Load: how the promises hold when many users ask at once."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from flakestorm.api.carrying import carry_out, report_in
from flakestorm.api.options import Options
from flakestorm.config.model import Config, Invariant, Load
from flakestorm.contracts.base import RunView, on_tape, trajectory
from flakestorm.contracts.matrix import prepare
from flakestorm.engine.events import Report
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.judged import Judged
from flakestorm.engine.load import MOST, Untold, load_plan
from flakestorm.engine.loaded import Loaded, Pace
from flakestorm.engine.plan import Plan, Trial
from flakestorm.engine.runner import Runner
from flakestorm.engine.score import Gate
from flakestorm.errors import ConfigError, Misuse

if TYPE_CHECKING:
    from flakestorm.api.project import Levels, Project

__all__ = ["check_load", "under_load"]

OPEN_FILES_EACH, OPEN_FILES_BESIDE = 3, 200
"""What a user takes of this process: a connection, a tape, and room for the agent's own where it is in here."""

UNTOLD = (
    "all users share one instance of the agent, and nothing tells the calls of its runs apart, so rules about calls "
    "are not judged under load: {}; `flakestorm contract run` judges them"
)
UNPACED = "advanced.rate_limit is not kept under load: the levels say how many runs are under way at once"
UNRESET = "the agent is not reset between runs, because that would hit the other users' runs"


def under_load(
    project: Project,
    options: Options,
    *,
    users: Levels = None,
    rates: Levels = None,
    runs: int | None = None,
) -> Report:
    """Judge the contract's invariants, else those at top level, with each number of users, or each rate of new ones.

    Args:
        project: whose agent it is.
        options: how; `concurrency` and `early` have no place here. Of what is resumed, the levels that were finished
            are taken over whole, and the others made anew.
        users, rates, runs: in place of what the config says under `load`. Where there are rates, there are no users.

    Raises:
        ConfigError: there is nothing to judge by, or nothing that can be judged under load.
        Misuse: an option has no place here, users and rates are both given, or the levels do not rise.
    """
    config = project.config
    for given, what in (
        (options.concurrency, "concurrency: the levels (--users) say how many runs are under way at once"),
        (options.early, "early stop: a level lasts as long as its runs do"),
    ):
        if given:
            raise Misuse(f"load knows no {what}")
    chosen = _chosen(config.load, users=users, rates=rates, runs=runs)
    shared = config.agent.type == "http"
    judged, left = _rules(config, shared=shared)
    resets = config.agent.reset_endpoint is not None or config.agent.reset_function is not None
    notes = [*([UNTOLD.format(", ".join(left))] if left else []), *([UNRESET] if resets else [])]
    notes += [UNPACED] if config.advanced.rate_limit.given() else []
    plan = load_plan(
        users=chosen.users,
        runs=chosen.runs,
        invariants=judged,
        prompts=config.golden_prompts,
        trials=options.trials,
        notes=notes,
        rates=chosen.rates,
        limits=config.load.max_ms.limits,
    )
    alone = changed(config.agent, reset_endpoint=None, reset_function=None)
    work = replace(project, config=changed(config, agent=alone).at(config.folder))
    levels = {s.name: count for s, count in zip(plan.scenarios, plan.rates or plan.users, strict=True)}

    def tailor(runner: Runner) -> None:
        def again(trial: Trial, *_: object) -> str:
            level = f"--{'rates' if plan.rates else 'users'}", f"{levels.get(trial.scenario.name, 1):g}"
            words = ["flakestorm", "load", "-c", str(project.path), *level, "--seed", str(runner.seed)]
            return shlex.join(words)

        runner.concurrency, runner.reproduce = 1, again

    if not options.dry_run:
        _make_room(min(max(plan.users), len(plan.trials)))
    resumed = None if options.resume is None else report_in(options.resume)
    gate, options = Gate("contract", options.min_score), replace(options, early=False, resume=resumed)
    crowd = _Crowd(plan, apart=config.agent.type in ("http", "command"), before=resumed.load if resumed else None)
    hooks = Hooks(holds=crowd.holds, begins=crowd.begins, reviewed=crowd.ended, paces=crowd.paces)

    def viewed(trial: Trial, view: RunView) -> RunView:
        view = crowd.viewed(trial, view)
        return replace(view, exchanges=Untold()) if shared else view

    hooks.viewed = viewed
    return carry_out(work, plan, gate, options, hooks=hooks, tailor=tailor)


def check_load(project: Project) -> None:
    """Check all that can be checked of `under_load` without running the agent.

    Raises:
        ConfigError, Misuse: as `under_load`.
    """
    load, planned = project.config.load, under_load(project, Options(dry_run=True)).planned
    _make_room(min(MOST if load.rates else max(load.users), planned))


def _make_room(users: int) -> None:
    """Let this process have a connection and a tape open for every user, as far as the system allows.

    Raises:
        Misuse: it does not.
    """
    try:
        import resource
    except ImportError:  # pragma: no cover -- platforms that have no such limit
        return
    needed = OPEN_FILES_EACH * users + OPEN_FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise Misuse(
            f"{users} users need {needed} open files, and this system allows {hard}: raise that (`ulimit -Hn`), or ask "
            "for fewer users"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class _Crowd:
    """The users of the levels: when they come, and how long it took.

    Those of a closed loop begin together. At a rate, the first comes when the level begins, and each other one at the
    same distance from the one before; how late it then is to ask is part of what it waits.

    Args:
        plan: by `load_plan`.
        apart: whether the agent is another process, so that the processor time of this one is flakestorm's own.
        before: how levels went that need not be made again; one that is, is measured anew.
    """

    def __init__(self, plan: Plan, *, apart: bool, before: Loaded | None = None) -> None:
        self._apart, self._closed = apart, not plan.rates
        self._users = {s.name: count for s, count in zip(plan.scenarios, plan.users, strict=True)}
        self._came_s: dict[str, float] = {}
        """When each user comes at a rate, by the run's id: seconds from when its level begins."""
        for scenario, rate in zip(plan.scenarios, plan.rates, strict=False):
            runs = [trial.run for trial in plan.trials if trial.scenario is scenario]
            self._came_s |= {run: at / rate for at, run in enumerate(runs)}
        self._opened_s: dict[str, float] = {}
        self._began_s: dict[str, float] = {}
        self._late_ms: dict[str, float] = {}
        self._first: dict[str, tuple[float, float]] = {}
        self._ended: Counter[str] = Counter()
        self._most: Counter[str] = Counter()
        self.paces = {
            level.scenario: Pace(level.duration_ms, level.own_ms)
            for level in (before.levels if before else ())
            if level.duration_ms is not None
        }

    def holds(self, trial: Trial) -> float:
        """How long it is until this user comes."""
        if trial.run not in self._came_s:
            return 0.0
        now_s = time.monotonic()
        return self._opened_s.setdefault(trial.scenario.name, now_s) + self._came_s[trial.run] - now_s

    async def begins(self, trial: Trial) -> None:
        """Runs that are started together are all made ready before the first of them asks."""
        await asyncio.sleep(0)
        name, now_s = trial.scenario.name, time.monotonic()
        came_s = self._opened_s.get(name, now_s) + self._came_s[trial.run] if trial.run in self._came_s else now_s
        self._began_s[trial.run], self._late_ms[trial.run] = came_s, (now_s - came_s) * 1000
        if name not in self._first:
            self._first[name] = came_s, time.process_time()
            self.paces.pop(name, None)
        self._most[name] = max(self._most[name], len(self._began_s))

    def viewed(self, trial: Trial, view: RunView) -> RunView:
        """The run as its user saw it, who came before there was room to ask."""
        late_ms = 0.0 if view.turns else self._late_ms[trial.run]
        return replace(view, latency_ms=view.latency_ms + late_ms) if late_ms else view

    def ended(self, judged: Judged) -> Judged:
        """The answer came when the run's latency had passed, whenever somebody had the time to judge it."""
        name, late_ms = judged.trial.scenario.name, self._late_ms.pop(judged.run.id)
        if late_ms:
            judged = replace(judged, run=replace(judged.run, latency_ms=round(judged.run.latency_ms + late_ms, 1)))
        began_s = self._began_s.pop(judged.run.id)
        first_s, first_cpu_s = self._first[name]
        self._ended[name] += 1
        took_ms = (began_s - first_s) * 1000 + judged.run.latency_ms
        took_ms = max(took_ms, self.paces[name].took_ms if name in self.paces else 0.0)
        each_ms = (time.process_time() - first_cpu_s) * 1000 / self._ended[name]
        before = self._users.get(name, 1) if self._closed else self._most[name]
        self.paces[name] = Pace(took_ms, each_ms * before if self._apart else None)
        return judged


def _chosen(load: Load, *, users: Levels, rates: Levels, runs: int | None) -> Load:
    """The config's `load` block with what is asked for in place of what it says.

    Raises:
        Misuse: users and rates are both given, or the levels do not rise.
    """
    if users and rates:
        raise Misuse("load: give users, who wait for their answers, or rates, at which new ones come, and not both")
    said = {"users": users or load.users, "rates": rates or ([] if users else load.rates)}
    try:
        return Load.of({**{name: list(levels) for name, levels in said.items()}, "runs": runs or load.runs})
    except ValueError as error:
        raise Misuse(f"load: {error}") from error


def _rules(config: Config, *, shared: bool) -> tuple[list[Invariant], list[str]]:
    """What judges under load, and the ids of the invariants that cannot. Calls of a shared instance belong to no run.

    Raises:
        ConfigError: nothing can.
        Misuse: one of them cannot be judged at all.
    """
    rules = (config.contract.invariants if config.contract else None) or config.invariants
    prepare(rules)
    untold = [rule for rule in rules if shared and (rule.type in on_tape or rule.type in trajectory)]
    least = config.load.min_pass_rate
    judged = [
        changed(rule, min_pass_rate=least) if rule.min_pass_rate is None else rule
        for rule in rules
        if rule not in untold
    ]
    if not judged:
        raise ConfigError(
            "load needs an invariant to judge by that looks at the answer, for example:\n"
            "  invariants:\n    - type: completes\n    - type: latency\n      max_ms: 2000",
            key="invariants",
        )
    return judged, [str(rule.id) for rule in untold]
