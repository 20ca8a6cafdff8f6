"""Load: how the promises hold when many users ask at once."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from flakestorm.api.carrying import carry_out
from flakestorm.api.options import Options
from flakestorm.config.model import Invariant, Load
from flakestorm.contracts.base import on_tape, trajectory
from flakestorm.contracts.matrix import prepare
from flakestorm.engine.events import Report
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.judged import Judged
from flakestorm.engine.load import Untold, load_plan
from flakestorm.engine.loaded import Pace
from flakestorm.engine.plan import Trial
from flakestorm.engine.runner import Runner
from flakestorm.engine.score import Gate
from flakestorm.errors import ConfigError, Misuse

if TYPE_CHECKING:
    from flakestorm.api.project import Project

__all__ = ["under_load"]

OPEN_FILES_EACH, OPEN_FILES_BESIDE = 3, 200
"""What a user takes of this process: a connection, a tape, and room for the agent's own where it is in here."""

UNTOLD = (
    "all users share one instance of the agent, and nothing tells the calls of its runs apart, so rules about calls "
    "are not judged under load: {}; `flakestorm contract run` judges them"
)
UNPACED = "advanced.rate_limit is not kept under load: the levels say how many runs are under way at once"
UNRESET = "the agent is not reset between runs, because that would hit the other users' runs"


def under_load(
    project: Project, options: Options, *, users: Sequence[int] | None = None, runs: int | None = None
) -> Report:
    """Judge the contract's invariants, else those at top level, with each number of users.

    Args:
        project: whose agent it is.
        options: how; `concurrency`, `early` and `resume` have no place here.
        users, runs: in place of `load.users` and `load.runs`.

    Raises:
        ConfigError: there is nothing to judge by, or nothing that can be judged under load.
        Misuse: an option has no place here, or the levels do not rise.
    """
    config = project.config
    for given, what in (
        (options.concurrency, "concurrency: the levels (--users) say how many runs are under way at once"),
        (options.early, "early stop: a level lasts as long as its runs do"),
        (options.resume, "resuming: the levels of one load test belong together"),
    ):
        if given:
            raise Misuse(f"load knows no {what}")
    try:
        chosen = Load.of({"users": list(users or config.load.users), "runs": runs or config.load.runs})
    except ValueError as error:
        raise Misuse(f"load: {error}") from error
    rules = (config.contract.invariants if config.contract else None) or config.invariants
    prepare(rules)
    shared = config.agent.type == "http"
    judged, left = _judgeable(rules, shared=shared)
    if not judged:
        raise ConfigError(
            "load needs an invariant to judge by that looks at the answer, for example:\n"
            "  invariants:\n    - type: completes\n    - type: latency\n      max_ms: 2000",
            key="invariants",
        )
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
    )
    alone = changed(config.agent, reset_endpoint=None, reset_function=None)
    work = replace(project, config=changed(config, agent=alone).at(config.folder))
    levels = {s.name: count for s, count in zip(plan.scenarios, plan.users, strict=True)}

    def tailor(runner: Runner) -> None:
        def again(trial: Trial, *_: object) -> str:
            count = str(levels.get(trial.scenario.name, 1))
            words = ["flakestorm", "load", "-c", str(project.path), "--users", count, "--seed", str(runner.seed)]
            return shlex.join(words)

        runner.concurrency, runner.reproduce = 1, again

    if not options.dry_run:
        _make_room(max(plan.users))
    gate, options = Gate("contract", options.min_score), replace(options, early=False)
    crowd = _Crowd(levels, apart=config.agent.type in ("http", "command"))
    hooks = Hooks(begins=crowd.begins, reviewed=crowd.ended, paces=crowd.paces)
    if shared:
        hooks.viewed = lambda _, view: replace(view, exchanges=Untold())
    return carry_out(work, plan, gate, options, hooks=hooks, tailor=tailor)


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
    """The users of the levels: they begin together, and it is noted how long they took.

    Args:
        users: of each scenario, by its name.
        apart: whether the agent is another process, so that the processor time of this one is flakestorm's own.
    """

    def __init__(self, users: Mapping[str, int], *, apart: bool) -> None:
        self._users, self._apart = users, apart
        self._began: dict[str, tuple[float, float]] = {}
        self._first: dict[str, tuple[float, float]] = {}
        self._ended: Counter[str] = Counter()
        self.paces: dict[str, Pace] = {}

    async def begins(self, trial: Trial) -> None:
        """Runs that are started together are all made ready before the first of them asks."""
        await asyncio.sleep(0)
        self._began[trial.run] = now = (time.monotonic(), time.process_time())
        self._first.setdefault(trial.scenario.name, now)

    def ended(self, judged: Judged) -> Judged:
        """The answer came when the run's latency had passed, whenever somebody had the time to judge it."""
        name = judged.trial.scenario.name
        began_s, _ = self._began.pop(judged.run.id)
        first_s, first_cpu_s = self._first[name]
        self._ended[name] += 1
        took_ms = (began_s - first_s) * 1000 + judged.run.latency_ms
        took_ms = max(took_ms, self.paces[name].took_ms if name in self.paces else 0.0)
        each_ms = (time.process_time() - first_cpu_s) * 1000 / self._ended[name]
        self.paces[name] = Pace(took_ms, each_ms * self._users.get(name, 1) if self._apart else None)
        return judged


def _judgeable(rules: Sequence[Invariant], *, shared: bool) -> tuple[list[Invariant], list[str]]:
    """What can be judged under load, and the ids of the rest. Calls of a shared instance belong to no run."""
    untold = [rule for rule in rules if shared and (rule.type in on_tape or rule.type in trajectory)]
    return [rule for rule in rules if rule not in untold], [str(rule.id) for rule in untold]
