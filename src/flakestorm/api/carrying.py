"""Where the pieces are put together: a configuration, its adapters and the engine become runs.

`carry_out` carries out a plan and reports on it. What decides from one run which to make next (a search, a comparison)
takes a `Runner` from `runner_of` instead, on a loop from `loops.in_a_loop`.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from flakestorm.agents.registry import make as make_agent
from flakestorm.api.inputs import demand_keys
from flakestorm.api.loops import in_a_loop
from flakestorm.api.options import Options
from flakestorm.api.outfit import outfit_of
from flakestorm.api.placed import telling
from flakestorm.api.redaction import redaction_of
from flakestorm.boundary.hub import Hub
from flakestorm.config import model_of
from flakestorm.config.model import Config, Invariant, Model, Scenario
from flakestorm.contracts.matrix import measured_by, wants_model
from flakestorm.core.choices import entropy_seed
from flakestorm.core.draws import Draws
from flakestorm.engine.advice import Advice
from flakestorm.engine.campaign import Campaign
from flakestorm.engine.events import Finished, Report
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Plan
from flakestorm.engine.ports import Adviser, Embedder
from flakestorm.engine.rounds import FROM_TRIALS
from flakestorm.engine.runner import Runner
from flakestorm.engine.score import Gate
from flakestorm.errors import Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.local import LocalExecutor
from flakestorm.executors.world import LocalWorld
from flakestorm.tape.shelf import STORE
from flakestorm.version import __version__

__all__ = [
    "Work",
    "carry_out",
    "embedders_of",
    "hub_of",
    "in_words",
    "judges_by",
    "report_in",
    "runner_of",
    "seed_of",
    "settled",
]

STAYS_HERE = (
    "this can be carried out here only: what stands in for the world, or chooses a run by those before it, cannot be "
    "sent to workers; leave out --executor ray"
)


class Work(Protocol):
    """What is to be judged, and how to say so on a command line; a `Project` is."""

    @property
    def config(self) -> Config: ...

    @property
    def path(self) -> Path:
        """The file the config came from, as the user named it."""
        ...

    @property
    def again(self) -> tuple[str, ...]:
        """The words that start a command line which runs one input again; empty for those of `flakestorm run`."""
        ...


def carry_out(
    work: Work,
    plan: Plan,
    gate: Gate,
    options: Options,
    hub: Hub | None = None,
    *,
    hooks: Hooks | None = None,
    tailor: Callable[[Runner], object] = lambda _: None,
) -> Report:
    """Carry out a plan and report on it.

    Args:
        work: the project.
        plan, gate: what to run, and by what to judge the whole.
        options: how.
        hub: the boundary, where the caller wants to look at it afterwards.
        hooks: what else takes part in each run; nothing when None.
        tailor: is given the runner before anything is run, to change how it goes about it.

    Raises:
        Misuse: the options do not fit one another, or the config names what is not available.
    """
    config = work.config
    if options.ray is not None and (hooks is not None or hub is not None):
        raise Misuse(STAYS_HERE)
    redaction_of(config)  # what it does not understand is said first
    resumed = None if options.resume is None else report_in(options.resume)
    seed = seed_of(config, options, None if resumed is None else resumed.seed)
    if resumed is not None and resumed.seed != seed:
        raise Misuse(f"the report to resume was made with seed {resumed.seed}; resume it with that seed or none")
    judges_by(config, plan.invariants)
    embedders_of(config, plan.invariants)
    sent = (trial for trial in plan.trials if trial.mutation is None)
    demand_keys(work, ((trial.scenario.name if plan.command == "replay run" else None, trial.text) for trial in sent))
    if options.dry_run:
        return _would_run(work, plan, seed)
    world = LocalWorld(options.tapes)
    boundary = hub or hub_of(config)
    with world.reserved():
        earlier = () if resumed is None else _earlier(config, plan, resumed, world)
        if options.ray is not None:
            from flakestorm.executors.distributed import load_ray

            load_ray(options.ray.address)  # that it is missing is said before anything is begun

    async def judge() -> Report:
        interrupted = False
        with interruptible() as signals, world.reserved():
            async with _runner(work, plan, options, seed, world, boundary, hooks) as runner:
                tailor(runner)
                campaign = Campaign(
                    plan,
                    runner,
                    gate,
                    world,
                    options.listener,
                    config=str(work.path),
                    agent=in_words(config),
                    earlier=earlier,
                    early=_leaves_early(plan, gate, options, config),
                    resets=bool(plan.users or config.agent.reset_endpoint or config.agent.reset_function),
                )
                try:
                    await campaign.execute()
                except asyncio.CancelledError:
                    if not signals:
                        raise
                    interrupted = True
        if boundary.borrowed and runner.concurrency > 1 and len(plan.trials) > 1:
            campaign.note(f"the agent is behind the gateway at {boundary.borrowed}, and its runs took turns")
        report = campaign.report(interrupted=interrupted)
        options.listener(Finished(report))
        return report

    return in_a_loop(judge)


@asynccontextmanager
async def runner_of(
    work: Work,
    scenarios: Iterable[Scenario],
    invariants: Iterable[Invariant],
    options: Options,
    seed: int,
    world: LocalWorld,
    hub: Hub,
    hooks: Hooks | None = None,
    *,
    shared: bool = False,
) -> AsyncIterator[Runner]:
    """What carries out trials, while entered; agent, boundary and model are let go of afterwards.

    Args:
        work: the project.
        scenarios: all there will be, for the tools they name.
        invariants: all there will be, for the model they want.
        options: how.
        seed: every random choice follows from it.
        world, hub: time and places, and the boundary.
        hooks: what else takes part in each run; nothing when None.
        shared: whether all runs are of one instance of the agent.

    Raises:
        Misuse: the options ask for workers elsewhere; only `carry_out` has those.
    """
    if options.ray is not None:
        raise Misuse(STAYS_HERE)
    with telling(work):
        config = work.config
        outfit = outfit_of(work, scenarios, options, seed, world, hub)
        if shared:
            outfit["pacing"] = None
        concurrency = options.concurrency or config.advanced.concurrency
        agent = make_agent(config, hub, concurrency=concurrency, shared=shared)
        model = judges_by(config, invariants)
        adviser = _client(model) if model is not None else None
        embedders = embedders_of(config, invariants)
        if hub.draws is not None and config.agent.type not in ("http", "command"):
            hub.hold()  # before the agent is imported
        try:
            yield Runner(
                agent=agent,
                executor=LocalExecutor(),
                concurrency=concurrency,
                visible=tuple(config.boundary.tools),
                advice=Advice(adviser, embedders),
                limit_ms=config.agent.timeout,
                elsewhere=_elsewhere(config) or (shared and config.agent.type == "http"),
                hooks=hooks or Hooks(),
                **outfit,
            )
        finally:
            # A signal may come while agents are given time to end. They are then killed at once, and that is all it
            # means: the runs are over, and worth their report.
            with suppress(asyncio.CancelledError):
                await agent.close()
            if adviser is not None:
                await adviser.close()
            for embedder in embedders.values():
                await embedder.close()
            await hub.close()


def _runner(
    work: Work, plan: Plan, options: Options, seed: int, world: LocalWorld, hub: Hub, hooks: Hooks | None
) -> AbstractAsyncContextManager[Runner]:
    if options.ray is None or plan.users:  # one instance is asked from one place
        return runner_of(
            work, plan.scenarios, plan.invariants, options, seed, world, hub, hooks, shared=bool(plan.users)
        )
    from flakestorm.api.away import away_runner_of

    return away_runner_of(work, plan.scenarios, plan.invariants, options, options.ray, seed, world, hub)


def seed_of(config: Config, options: Options, resumed: int | None = None) -> int:
    """The seed: what was asked for, else that of what is resumed, else the config's, else a fresh one."""
    for seed in (options.seed, resumed, config.advanced.seed):
        if seed is not None:
            return seed
    return entropy_seed()


def settled(config: Config, options: Options) -> Options:
    """The options with their seed decided, for what must be known before a plan is made."""
    resumed = None if options.resume is None else report_in(options.resume)
    seed = seed_of(config, options, None if resumed is None else resumed.seed)
    return replace(options, seed=seed, resume=resumed)


def judges_by(config: Config, invariants: Iterable[Invariant]) -> Model | None:
    """The model that judges, if any of these invariants wants one.

    Raises:
        ConfigError: one does, and none is configured.
    """
    asking = [str(invariant.id) for invariant in invariants if wants_model(invariant)]
    return model_of(config, wanted_by=tuple(dict.fromkeys(asking))) if asking else None


def embedders_of(config: Config, invariants: Iterable[Invariant]) -> dict[str, Embedder]:
    """What measures likeness in meaning for these invariants, by `Invariant.measure`.

    Raises:
        MissingExtra: one wants sentence-transformers, which is not installed.
        ConfigError: one wants the config's model, and none is configured.
        Misuse: that model's provider has no embeddings.
    """
    wanted: dict[str, list[str]] = {}
    for invariant in invariants:
        if by := measured_by(invariant):
            wanted.setdefault(by, []).append(str(invariant.id))
    if not wanted:
        return {}
    from flakestorm.models.embedding import LocalEmbedder, ModelEmbedder  # few contracts compare meanings

    found: dict[str, Embedder] = {}
    if "semantic" in wanted:
        found["semantic"] = LocalEmbedder()
    if "model" in wanted:
        found["model"] = ModelEmbedder(model_of(config, wanted_by=wanted["model"]))
    return found


def hub_of(config: Config, draws: Draws | None = None, *, replaying: bool = False) -> Hub:
    """The boundary of this project's agent; a standing gateway is looked for here and beside the config.

    Args:
        config: the project's.
        draws, replaying: see `Hub`.
    """
    return Hub(stores=(STORE, Path(config.folder, STORE)), draws=draws, replaying=replaying)


def _leaves_early(plan: Plan, gate: Gate, options: Options, config: Config) -> bool:
    """Whether decided cells get no more trials. A score counts every trial, so none is left out where one decides.

    Nor where it counts runs, as robustness and chaos resilience do: what fails is left after a run or two and what
    passes is run on, so the runs that are made are better than the agent is.
    """
    if options.early is not None:
        return options.early
    decides = gate.min_score is not None or config.certificate.pass_threshold is not None
    return not decides and gate.rule not in ("chaos", "mutation") and plan.repeats >= FROM_TRIALS


def _would_run(work: Work, plan: Plan, seed: int) -> Report:
    """The report of a command that was only asked what it would do."""
    planned = len(plan.runs)
    more = [f"scenarios that {plan.generate} adds"] if plan.generate is not None else []
    more += ["one run without chaos for each prompt that fails"] if any(s.chaos for s in plan.scenarios) else []
    mutated = any(trial.mutation is not None for trial in plan.trials)
    more += (
        ["one run as it is of each prompt that fails benign mutations"]
        if mutated and len(more) == (plan.generate is not None)
        else []
    )
    said = f"{planned} run{'' if planned == 1 else 's'} would be made" + (f", and {' and '.join(more)}" if more else "")
    return Report(
        plan.command, "inconclusive", 0, said, seed, "", 0.0, {}, (), (),
        prompts=plan.prompts, config=str(work.path), agent=in_words(work.config), version=__version__, planned=planned,
    )  # fmt: skip


def _earlier(config: Config, plan: Plan, report: Report, world: LocalWorld) -> tuple[Judged, ...]:
    from flakestorm.engine.resume import take_over, unseen  # only what resumes reads tapes
    from flakestorm.tape.reader import Tape

    shared = bool(plan.users) and config.agent.type == "http"
    return take_over(
        plan,
        report,
        lambda run: Tape.open(run.tape).exchanges(),
        world,
        agent=in_words(config),
        visible=tuple(config.boundary.tools),
        elsewhere=_elsewhere(config) or shared,
        hidden=redaction_of(config)().hidden,
        **({"viewed": unseen} if shared else {}),
    )


def _elsewhere(config: Config) -> bool:
    """Whether somebody else starts the agent."""
    return config.agent.type == "http" and not config.agent.start


def report_in(resume: Path | Report) -> Report:
    """The report to resume."""
    if isinstance(resume, Report):
        return resume
    from flakestorm.reports.document import read_json  # only what resumes reads reports

    return read_json(resume)


def _client(model: Model) -> Adviser:
    from flakestorm.models.client import ModelClient  # few contracts ask a model

    return ModelClient(model)


def in_words(config: Config) -> str:
    """The agent in a few words, by which a report tells whose runs it holds."""
    agent = config.agent
    start = agent.start if isinstance(agent.start, str) else shlex.join(agent.start or ())
    words = " ".join(word for word in (agent.type, agent.endpoint, f"(started by: {start})" if start else "") if word)
    return redaction_of(config)().hidden(words)
