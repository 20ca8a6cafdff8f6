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
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from flakestorm.agents.registry import make as make_agent
from flakestorm.boundary.hub import Hub
from flakestorm.config import contract_of, require_invariants, scenarios_of
from flakestorm.config import load as load_config
from flakestorm.config.model import Config, ContextAttack, Invariant, LlmFault, Scenario, ToolFault
from flakestorm.contracts.matrix import prepare
from flakestorm.core.choices import entropy_seed
from flakestorm.core.ledger import Ledger
from flakestorm.engine.campaign import Campaign
from flakestorm.engine.events import Event, Finished, Listener, Report
from flakestorm.engine.plan import BASELINE, Plan, Trial, make_plan
from flakestorm.engine.resume import take_over
from flakestorm.engine.runner import Judged, Runner
from flakestorm.engine.score import Gate
from flakestorm.errors import ConfigError, Misuse
from flakestorm.executors.local import LocalExecutor
from flakestorm.faults import profiles
from flakestorm.faults.schedule import Schedule, parse_injection

__all__ = ["Options", "Project", "load"]


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
        resume: the JSON report of an interrupted command, whose finished runs are taken over.
    """

    seed: int | None = None
    trials: int | None = None
    concurrency: int | None = None
    min_score: float | None = None
    tapes: Path = field(default_factory=lambda: Path("reports") / "tapes")
    listener: Listener = _silent
    resume: Path | None = None


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
            scenario = profiles.load(profile)
        elif self.config.chaos is not None:
            scenario = Scenario(name="chaos", **dict(self.config.chaos))
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
        probing = [i.model_copy(update={"probes": []}) for i in everything if prompt in i.probes]
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
        )

    def probe(self, options: Options | None = None) -> Report:
        """Ask the agent its first golden prompt, without chaos, judged by nothing but whether it completes."""
        completes = Invariant(type="completes", id="completes", severity="critical")
        plan = make_plan(
            "verify", scenarios=[BASELINE], invariants=[completes], prompts=self.config.golden_prompts, only=[0]
        )
        return self._run(plan, Gate("single"), options or Options())

    def check(self) -> Plan:
        """Check all that can be checked without running the agent; gives what `contract` would run.

        Raises:
            Misuse: a fault mode, an invariant type or an agent type is not available, or a setting makes no sense.
        """
        self._refuse_what_is_missing()
        plan = self.contract_plan(Options())
        prepare((*self.config.invariants, *plan.invariants))
        for chaos in (*plan.scenarios, *([self.config.chaos] if self.config.chaos else [])):
            Schedule.of(chaos)
        make_agent(self.config, Hub(), concurrency=1)
        return plan

    # --- putting the pieces together -----------------------------------------------------------------------------

    def _run(self, plan: Plan, gate: Gate, options: Options) -> Report:
        """Carry out a plan on an event loop of its own; in a thread where the caller's thread has one already."""
        self._refuse_what_is_missing()
        resumed = None if options.resume is None else _report_in(options.resume)
        seeds = (options.seed, None if resumed is None else resumed.seed, self.config.advanced.seed, entropy_seed())
        seed = next(s for s in seeds if s is not None)
        if resumed is not None and resumed.seed != seed:
            raise Misuse(f"{options.resume} was made with seed {resumed.seed}; resume it with that seed or none")
        world = _World(options.tapes)
        earlier = () if resumed is None else self._earlier(plan, resumed, world)

        def run() -> Report:
            with asyncio.Runner(loop_factory=_loop_factory()) as loop:
                return loop.run(self._judge(plan, gate, options, seed, world, earlier))

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

    def _earlier(self, plan: Plan, report: Report, world: _World) -> tuple[Judged, ...]:
        from flakestorm.tape.reader import Tape  # only what resumes reads tapes

        return take_over(
            plan,
            report,
            lambda run: Tape.open(run.tape).exchanges(),
            world,
            agent=_in_words(self.config),
            visible=self._visible,
        )

    @property
    def _visible(self) -> tuple[str, ...]:
        return tuple(self.config.boundary.tools)

    async def _judge(
        self, plan: Plan, gate: Gate, options: Options, seed: int, world: _World, earlier: tuple[Judged, ...]
    ) -> Report:
        hub = Hub()
        concurrency = options.concurrency or self.config.advanced.concurrency
        agent = make_agent(self.config, hub, concurrency=concurrency)
        runner = Runner(
            agent=agent,
            boundary=hub,
            executor=LocalExecutor(),
            world=world,
            seed=seed,
            tools=self._tools(plan),
            listener=options.listener,
            concurrency=concurrency,
            reproduce=self._reproduce,
            visible=self._visible,
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
        with _interruptible() as signals:
            try:
                await campaign.execute()
            except asyncio.CancelledError:
                if not signals:
                    raise
                interrupted = True
            finally:
                await agent.close()
                await hub.close()
        report = campaign.report(interrupted=interrupted)
        options.listener(Finished(report))
        return report

    def _tools(self, plan: Plan) -> list[tuple[str, str]]:
        """Names for plain HTTP tools: `boundary.tools`, then the faults that name a tool and say where it is.

        Those of the whole config, whatever is run of it, so that a site has one name everywhere.
        """
        named = list(self.config.boundary.tools.items())
        matrix = self.config.contract.chaos_matrix if self.config.contract else []
        everything = [*plan.scenarios, *matrix, *self.config.chaos_matrix, *filter(None, [self.config.chaos])]
        named += [
            (fault.tool, fault.match_url)
            for chaos in everything
            for fault in chaos.tool_faults
            if fault.match_url is not None and not set(fault.tool) & set("*?[")
        ]
        return list(dict.fromkeys(named))

    def _all_invariants(self) -> list[Invariant]:
        """The contract's invariants and the top-level ones; of two that are the same, one."""
        own = self.config.contract.invariants if self.config.contract else []
        ids = {invariant.id for invariant in own}
        top = [
            i.model_copy(update={"id": f"{i.id} (top level)"}) if i.id in ids else i
            for i in self.config.invariants
            if i not in own
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


class _World:
    """The engine's clock and places."""

    def __init__(self, tapes: Path) -> None:
        self._tapes = tapes
        try:
            tapes.mkdir(parents=True, exist_ok=True)  # before anything is run: a run without its tape is lost
        except OSError as error:
            raise Misuse(f"tapes cannot be written to {tapes}: {error.strerror}") from error

    def monotonic(self) -> float:
        return time.perf_counter()

    def now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """By an alarm, which only the main thread of a POSIX system can set; elsewhere there is no limit."""
        if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
            yield
            return

        def ring(*_: object) -> None:
            raise TimeoutError(f"took longer than {seconds:g} s")

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def tape_path(self, run: str) -> Path:
        return self._tapes / f"{run}.tape"


SAME_INTERRUPTION_S = 1.0
"""Keys are pressed twice, and wrappers pass on what the terminal has sent already: so long it is one interruption."""


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """While entered, the first SIGINT or SIGTERM cancels the current task and is noted.

    More of them within `SAME_INTERRUPTION_S` are ignored, even after this was left, so that the report of what had
    finished can be written. A later one is obeyed at once. Only the main thread gets signals; in any other one nothing
    is changed.
    """
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    loop, cancel = asyncio.get_running_loop(), cast("asyncio.Task[object]", asyncio.current_task()).cancel
    caught = (signal.SIGINT, signal.SIGTERM)
    before: dict[int, Any] = {number: signal.getsignal(number) for number in caught}
    obeyed: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    patient_until_s = 0.0

    def interrupt(number: int) -> None:
        nonlocal patient_until_s
        patient_until_s = time.monotonic() + SAME_INTERRUPTION_S
        seen.append(number)
        for each in caught:
            loop.remove_signal_handler(each)
            signal.signal(each, again)  # works when the loop does not
        cancel()

    def again(number: int, _: object) -> None:
        if time.monotonic() >= patient_until_s:
            signal.signal(number, obeyed[number])
            signal.raise_signal(number)

    for number in caught:
        loop.add_signal_handler(number, interrupt, number)
    try:
        yield seen
    finally:
        obeyed.update(before)
        for number in () if seen else caught:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def _report_in(file: Path) -> Report:
    from flakestorm.reports.document import read_json  # only what resumes reads reports

    return read_json(file)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where there is one."""
    try:
        import uvloop
    except ImportError:  # pragma: no cover -- platforms without uvloop
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _in_words(config: Config) -> str:
    agent = config.agent
    start = agent.start if isinstance(agent.start, str) else shlex.join(agent.start or ())
    return " ".join(word for word in (agent.type, agent.endpoint, f"(started by: {start})" if start else "") if word)
