"""flakestorm from Python: the same engine as the command line.

    import flakestorm
    report = flakestorm.load("flakestorm.yaml").contract()
    assert report.verdict == "pass", report.headline

This is also the one place where the pieces are put together: adapters (agents, boundary, executor, clock) meet the
engine here and nowhere else.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from flakestorm.agents.registry import make as make_agent
from flakestorm.boundary.hub import Hub
from flakestorm.config import contract_of, model_of, require_invariants, scenarios_of, tools_of
from flakestorm.config import load as load_config
from flakestorm.config.access import faults_in, invariants_in
from flakestorm.config.load import located
from flakestorm.config.model import Config, ContextAttack, Invariant, LlmFault, Model, Scenario, ToolFault
from flakestorm.config.problems import Path as Place
from flakestorm.contracts.matrix import prepare, wants_model
from flakestorm.core.choices import entropy_seed
from flakestorm.core.ledger import Ledger
from flakestorm.engine.campaign import Campaign
from flakestorm.engine.events import Event, Finished, Listener, Report
from flakestorm.engine.plan import BASELINE, Plan, Trial, make_plan
from flakestorm.engine.ports import Adviser
from flakestorm.engine.runner import Judged, Runner
from flakestorm.engine.score import Gate
from flakestorm.errors import ConfigError, Misuse
from flakestorm.executors.interruption import interruptible
from flakestorm.executors.local import LocalExecutor
from flakestorm.executors.world import LocalWorld
from flakestorm.faults.schedule import Planned, Schedule, parse_injection
from flakestorm.tape.shelf import STORE

if TYPE_CHECKING:  # what an HTTP server and its client come with
    from flakestorm.boundary.census import Census

__all__ = ["Options", "Project", "load", "loop_factory"]


def load(path: str | Path = "flakestorm.yaml") -> Project:
    """Read a configuration file.

    Raises:
        ConfigError: the file is missing or wrong; the message names file, line and key.
    """
    return Project(load_config(Path(path)), Path(path))


def _silent(_: Event) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Options:
    """How a judging command is carried out; None takes what the config says.

    Args:
        seed: every random choice follows from it; a fresh one when neither this nor `advanced.seed` is given.
        trials: runs of each cell.
        concurrency: runs under way at once.
        min_score: the gate (0..100 for contracts, 0..1 for chaos); None is the command's default.
        tapes: the folder tapes are written to.
        listener: is told everything as it happens.
        resume: the report of an interrupted command, whose finished runs are taken over, or the path of its JSON form.
    """

    seed: int | None = None
    trials: int | None = None
    concurrency: int | None = None
    min_score: float | None = None
    tapes: Path = field(default_factory=lambda: Path("reports") / "tapes")
    listener: Listener = _silent
    resume: Path | Report | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """A loaded configuration and what can be done with it.

    Args:
        config: the configuration.
        path: the file it came from, as the user named it.
        again: the words that start a command line which runs one input of this project again.
    """

    config: Config
    path: Path
    again: tuple[str, ...] = ()

    def contract(self, options: Options | None = None) -> Report:
        """Judge the contract in every scenario of its chaos matrix.

        Raises:
            Misuse: the config has no contract, no invariants or an empty matrix, or names what is not available.
        """
        options = options or Options()
        return self._run(self.contract_plan(options), Gate("contract", options.min_score), options)

    def chaos(self, profile: str | None = None, options: Options | None = None) -> Report:
        """Run the golden prompts under chaos: a profile's, or the config's own `chaos` block.

        Args:
            profile: a built-in profile's name or the path of a profile file.
            options: how.
        """
        options = options or Options()
        if profile is not None:
            from flakestorm.faults.profiles import load as load_profile

            scenario = load_profile(profile)
        elif self.config.chaos is not None:
            scenario = Scenario(name="chaos", **asdict(self.config.chaos))
        else:
            raise ConfigError(
                "there is no chaos to apply: add a 'chaos' block to the config or name a profile "
                "(`flakestorm profiles` lists them)",
                file=self.path,
            )
        require_invariants(self.config)
        plan = make_plan(
            "chaos",
            scenarios=[scenario],
            invariants=self.config.invariants,
            prompts=self.config.golden_prompts,
            trials=options.trials or 1,
        )
        return self._run(plan, Gate("chaos", options.min_score), options)

    def inject(self, prompt: int | str, injections: Sequence[str] = (), options: Options | None = None) -> Report:
        """One input, unmutated, with exactly these faults, judged by every invariant there is.

        Args:
            prompt: index into `golden_prompts`, from 0, or the text of a probe or of any other input.
            injections: `SITE=FAULT`, e.g. `tool/search#1=error:503`.
            options: how.
        """
        options = options or Options()
        golden = self.config.golden_prompts
        if isinstance(prompt, int) and not 0 <= prompt < len(golden):
            raise Misuse(f"there is no golden prompt {prompt}: they are numbered 0 to {len(golden) - 1}")
        faults = [parse_injection(text).spec for text in injections]
        scenario = Scenario(
            name="injected" if faults else BASELINE.name,
            tool_faults=[f for f in faults if isinstance(f, ToolFault)],
            llm_faults=[f for f in faults if isinstance(f, LlmFault)],
            context_attacks=[f for f in faults if isinstance(f, ContextAttack)],
        )
        everything = self._all_invariants()
        probing = [i.probing([]) for i in everything if prompt in i.probes]
        plan = make_plan(
            "run",
            scenarios=[scenario],
            invariants=probing or [i for i in everything if not i.probes],
            prompts=golden if isinstance(prompt, int) else [prompt],
            only=[prompt] if isinstance(prompt, int) else [0],
            trials=options.trials or 1,
        )
        return self._run(plan, Gate("single", options.min_score), options)

    def contract_plan(self, options: Options) -> Plan:
        """What `contract` would run."""
        contract = contract_of(self.config)
        return make_plan(
            "contract run",
            scenarios=scenarios_of(self.config),
            invariants=contract.invariants or self.config.invariants,
            prompts=self.config.golden_prompts,
            trials=options.trials or contract.trials,
            generate=contract.generate,
        )

    def probe(self, options: Options | None = None) -> tuple[Report, Census]:
        """Ask the agent its first golden prompt, without chaos, judged by nothing but whether it completes.

        Returns:
            The report, and what was seen at its boundary.
        """
        completes = Invariant(type="completes", id="completes", severity="critical")
        plan = make_plan(
            "verify", scenarios=[BASELINE], invariants=[completes], prompts=self.config.golden_prompts, only=[0]
        )
        hub = self._hub()
        report = self._run(plan, Gate("single"), options or Options(), hub)
        return report, hub.census()

    def check(self) -> Plan:
        """Check all that can be checked without running the agent; gives what `contract` would run.

        Raises:
            ConfigError: a fault mode or an invariant type is not available, or a setting makes no sense; the message
                names file and line.
            Misuse: the same of the agent.
        """
        self._refuse_what_is_missing()
        plan = self.contract_plan(Options())
        for place, invariant in invariants_in(self.config):
            with self._standing(place):
                prepare([invariant])
        for place, fault in faults_in(self.config):
            with self._standing(place):
                Planned.of(fault).check()
        make_agent(self.config, Hub(), concurrency=1)
        self._judges_by((*self.config.invariants, *plan.invariants))
        return plan

    @contextmanager
    def _standing(self, place: Place) -> Iterator[None]:
        """While entered, misuse is of what stands at this place in the file."""
        try:
            yield
        except Misuse as error:
            raise located(error, self.path, place) from error

    # --- putting the pieces together -----------------------------------------------------------------------------

    def _run(self, plan: Plan, gate: Gate, options: Options, hub: Hub | None = None) -> Report:
        """Carry out a plan on an event loop of its own; in a thread where the caller's thread has one already."""
        self._refuse_what_is_missing()
        resumed = None if options.resume is None else _report_in(options.resume)
        seeds = (options.seed, None if resumed is None else resumed.seed, self.config.advanced.seed, entropy_seed())
        seed = next(s for s in seeds if s is not None)
        if resumed is not None and resumed.seed != seed:
            raise Misuse(f"the report to resume was made with seed {resumed.seed}; resume it with that seed or none")
        self._judges_by(plan.invariants)
        world = LocalWorld(options.tapes)
        earlier = () if resumed is None else self._earlier(plan, resumed, world)

        def run() -> Report:
            with asyncio.Runner(loop_factory=loop_factory()) as loop:
                return loop.run(self._judge(plan, gate, options, seed, world, earlier, hub or self._hub()))

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run).result()

    def _refuse_what_is_missing(self) -> None:
        """Settings that this version would silently ignore, to somebody's harm."""
        if self.config.boundary.redact:
            raise Misuse(
                "boundary.redact is not available in this version, so tapes would keep what it names; leave it out to "
                "record all the same"
            )

    def _judges_by(self, invariants: Iterable[Invariant]) -> Model | None:
        """The model that judges, if any of these invariants wants one.

        Raises:
            ConfigError: one does, and none is configured.
        """
        asking = [str(invariant.id) for invariant in invariants if wants_model(invariant)]
        return model_of(self.config, wanted_by=tuple(dict.fromkeys(asking))) if asking else None

    def _earlier(self, plan: Plan, report: Report, world: LocalWorld) -> tuple[Judged, ...]:
        from flakestorm.engine.resume import take_over  # only what resumes reads tapes
        from flakestorm.tape.reader import Tape

        return take_over(
            plan,
            report,
            lambda run: Tape.open(run.tape).exchanges(),
            world,
            agent=_in_words(self.config),
            visible=self._visible,
            elsewhere=self._elsewhere,
        )

    @property
    def _elsewhere(self) -> bool:
        """Whether somebody else starts the agent."""
        return self.config.agent.type == "http" and not self.config.agent.start

    @property
    def _visible(self) -> tuple[str, ...]:
        return tuple(self.config.boundary.tools)

    def _hub(self) -> Hub:
        return Hub(stores=(STORE, Path(self.config.folder, STORE)))

    async def _judge(
        self,
        plan: Plan,
        gate: Gate,
        options: Options,
        seed: int,
        world: LocalWorld,
        earlier: tuple[Judged, ...],
        hub: Hub,
    ) -> Report:
        concurrency = options.concurrency or self.config.advanced.concurrency
        agent = make_agent(self.config, hub, concurrency=concurrency)
        model = self._judges_by(plan.invariants)
        adviser = _client(model) if model is not None else None
        runner = Runner(
            agent=agent,
            boundary=hub,
            executor=LocalExecutor(),
            world=world,
            seed=seed,
            tools=tools_of(self.config, *plan.scenarios),
            listener=options.listener,
            concurrency=concurrency,
            reproduce=self._reproduce,
            visible=self._visible,
            adviser=adviser,
            limit_ms=self.config.agent.timeout,
            elsewhere=self._elsewhere,
        )
        campaign = Campaign(
            plan,
            runner,
            gate,
            world,
            options.listener,
            config=str(self.path),
            agent=_in_words(self.config),
            earlier=earlier,
        )
        interrupted = False
        with interruptible() as signals:
            try:
                await campaign.execute()
            except asyncio.CancelledError:
                if not signals:
                    raise
                interrupted = True
            finally:
                if adviser is not None:
                    await adviser.close()
                await agent.close()
                await hub.close()
        if hub.borrowed and concurrency > 1 and len(plan.trials) > 1:
            campaign.note(f"the agent is behind the gateway at {hub.borrowed}, and its runs took turns")
        report = campaign.report(interrupted=interrupted)
        options.listener(Finished(report))
        return report

    def _all_invariants(self) -> list[Invariant]:
        """The contract's invariants and the top-level ones; of two that are the same, one."""
        own = self.config.contract.invariants if self.config.contract else []
        ids = {invariant.id for invariant in own}
        top = [
            replace(i, id=f"{i.id} (top level)") if i.id in ids else i for i in self.config.invariants if i not in own
        ]
        return [*own, *top]

    def _reproduce(self, trial: Trial, schedule: Schedule, ledger: Ledger) -> str:
        """The command line that makes this run again: its prompt, with exactly the faults that fired."""
        golden = self.config.golden_prompts
        words = [*(self.again or ("flakestorm", "run", "-c", str(self.path)))]
        if trial.prompt < len(golden) and golden[trial.prompt] == trial.text:
            words += ["--prompt", str(trial.prompt)]
        else:
            words += ["--input", trial.text]
        for firing in sorted(ledger.fired, key=lambda firing: (firing.fault, firing.site)):  # the order is the nesting
            words += ["--inject", f"{firing.site}={schedule.planned[firing.fault].at(firing.site).fault}"]
        return shlex.join(words)


def _report_in(resume: Path | Report) -> Report:
    if isinstance(resume, Report):
        return resume
    from flakestorm.reports.document import read_json  # only what resumes reads reports

    return read_json(resume)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:  # pragma: no cover -- platforms without uvloop
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _client(model: Model) -> Adviser:
    from flakestorm.models.client import ModelClient  # few contracts ask a model

    return ModelClient(model)


def _in_words(config: Config) -> str:
    agent = config.agent
    start = agent.start if isinstance(agent.start, str) else shlex.join(agent.start or ())
    return " ".join(word for word in (agent.type, agent.endpoint, f"(started by: {start})" if start else "") if word)
