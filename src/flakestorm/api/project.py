"""A loaded configuration, and the commands that judge by it: what would run, and under which gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as copied
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import asdict

from flakestorm.api.carrying import carry_out, hub_of, settled
from flakestorm.api.options import Options
from flakestorm.api.placed import placed
from flakestorm.config import contract_of, require_invariants, scenarios_of
from flakestorm.config import load as load_config
from flakestorm.config.access import all_invariants
from flakestorm.config.model import Config, Invariant, Scenario
from flakestorm.contracts.matrix import prepare
from flakestorm.core.record import Record
from flakestorm.engine.blamed import BUDGET
from flakestorm.engine.events import Report
from flakestorm.engine.plan import BASELINE, Plan, injected, make_plan
from flakestorm.engine.score import Gate
from flakestorm.errors import ConfigError, Misuse
from flakestorm.faults.schedule import Planned, parse_fault, parse_injection

if TYPE_CHECKING:  # what comparing, shrinking, or an HTTP server and its client come with
    from flakestorm.api.comparing import Comparison, Terms
    from flakestorm.api.shrinking import Case, Shrunk
    from flakestorm.boundary.census import Census
    from flakestorm.tape.reader import Tape

__all__ = ["Project", "load"]

Levels: TypeAlias = Sequence[float] | None


def load(path: str | Path = "flakestorm.yaml") -> Project:
    """Read a configuration file.

    Raises:
        ConfigError: the file is missing or wrong; the message names file, line and key.
    """
    return Project(load_config(Path(path)), Path(path))


def _injection(text: str) -> Planned:
    """`SITE=FAULT`; or a fault that lasts, written without an occurrence, as a search tells it."""
    target = text.partition("=")[0]
    return parse_fault(text) if "/" in target and "#" not in target else parse_injection(text)


class Project(Record, frozen=True):
    """A loaded configuration and what can be done with it.

    Args:
        config: the configuration.
        path: the file it came from, as the user named it.
        again: the words that start a command line which runs one input of this project again.
    """

    config: Config
    path: Path
    again: tuple[str, ...] = ()

    @placed
    def contract(self, options: Options | None = None) -> Report:
        """Judge the contract in every scenario of its chaos matrix.

        Raises:
            Misuse: the config has no contract, no invariants or an empty matrix, or names what is not available.
        """
        options = options or Options()
        return carry_out(self, self.contract_plan(options), Gate("contract", options.min_score), options)

    @placed
    def chaos(self, profile: str | None = None, options: Options | None = None) -> Report:
        """Run the golden prompts under chaos: a profile's, or the config's own `chaos` block.

        Args:
            profile: a built-in profile's name or the path of a profile file.
            options: how.
        """
        options, scenario = options or Options(), self._chaos(profile)
        require_invariants(self.config)
        plan = make_plan(
            "chaos",
            scenarios=[scenario],
            invariants=self.config.invariants,
            prompts=self.config.golden_prompts,
            trials=options.trials or 1,
        )
        return carry_out(self, plan, Gate("chaos", options.min_score), options)

    @placed
    def mutations(self, options: Options | None = None, *, chaos: bool = False, profile: str | None = None) -> Report:
        """Run the mutations of every golden prompt.

        Args:
            options: how.
            chaos: whether the config's `chaos` block is played meanwhile; profile: this profile instead.

        Raises:
            Misuse: there is nothing to judge by, or no chaos to apply.
        """
        from flakestorm.api.mutating import mutated  # contracts mutate nothing

        options = settled(self.config, options or Options())
        scenario = self._chaos(profile) if chaos or profile is not None else BASELINE
        require_invariants(self.config)
        return carry_out(self, mutated(self, options, scenario), Gate("mutation", options.min_score), options)

    @placed
    def inject(
        self,
        prompt: int | str | None,
        injections: Sequence[str] = (),
        options: Options | None = None,
        *,
        mutation: str | None = None,
        tape: str | Path | None = None,
    ) -> Report:
        """One input, unmutated, with exactly these faults, judged by every invariant there is.

        Args:
            prompt: index into `golden_prompts`, from 0, or the text of a probe or of any other input. None is the input
                of the tape, or the first golden prompt.
            injections: `SITE=FAULT`, e.g. `tool/search#1=error:503`.
            options: how.
            mutation: `TYPE#NUMBER`, to send the golden prompt in this mutation.
            tape: stands in for the world until a fault has fired, and after it as far as it has answers.
        """
        options = options or Options()
        recorded = None if tape is None else _open(tape)
        if prompt is None:
            prompt = (None if recorded is None else recorded.input) or 0
        golden = _golden(self.config, [prompt] if isinstance(prompt, int) else ())
        scenario = injected([_injection(text).spec for text in injections])
        everything = all_invariants(self.config)
        probing = [i.probing([]) for i in everything if prompt in i.probes]
        plan = make_plan(
            "run",
            scenarios=[scenario],
            invariants=probing or [i for i in everything if not i.probes],
            prompts=golden if isinstance(prompt, int) else [prompt],
            only=[prompt] if isinstance(prompt, int) else [0],
            trials=options.trials or 1,
        )
        if mutation is not None:
            from flakestorm.api.mutating import in_one

            options = settled(self.config, options)
            plan = in_one(self, plan, options, mutation)
        gate = Gate("single", options.min_score)
        if recorded is None:
            return carry_out(self, plan, gate, options)
        from flakestorm.api.faulting import carry_out_on  # few runs have a tape

        again = (*(self.again or ("flakestorm", "run", "-c", str(self.path))), "--tape", str(tape))
        return carry_out_on(recorded, copied(self, again=again), plan, gate, options)

    def compare(
        self,
        base: str | Path,
        head: str | Path | None = None,
        *,
        terms: Terms | None = None,
        options: Options | None = None,
    ) -> Comparison:
        """Whether `head` (this config, when None) is worse than `base`; see `flakestorm.compare`."""
        from flakestorm.api.comparing import compare  # few compare

        return compare(base, self.path if head is None else head, config=self.path, terms=terms, options=options)

    @placed
    def replay(self, path: str | Path | Sequence[Path] | None = None, options: Options | None = None) -> Report:
        """Replay sessions: the incident's input and recorded tool replies, judged by its contract.

        Args:
            path: a session file, a tape, a folder of them, or the id of a session in the config; several files; None
                for the config's `replays`.
            options: how.

        Raises:
            ConfigError: a session is wrong, or names a contract that there is not.
            Misuse: there is no session.
        """
        from flakestorm.api.incidents import incidents_at, replay  # only what replays pays for it

        paths = [None] if path is None else [Path(path)] if isinstance(path, (str, Path)) else path
        incidents = [incident for each in paths for incident in incidents_at(self.config, each)]
        return replay(self, incidents, options or Options())

    @placed
    def check_sessions(self) -> Plan:
        """Check the config's own sessions without running anything; gives what `replay` would run of them.

        Raises:
            ConfigError, Misuse: as `replay`.
        """
        from flakestorm.api.incidents import incidents_at, plan_of

        plan, _ = plan_of(self.config, incidents_at(self.config, None, offline=True))
        prepare(plan.invariants)
        return plan

    @placed
    def under_load(
        self, options: Options | None = None, *, users: Levels = None, rates: Levels = None, runs: int | None = None
    ) -> Report:
        """Judge the agent with more and more users; see `flakestorm.api.loading`."""
        from flakestorm.api.loading import under_load  # few commands put load on an agent

        return under_load(self, options or Options(), users=users, runs=runs, rates=rates)

    @placed
    def explore(
        self,
        options: Options | None = None,
        *,
        budget: int | None = None,
        modes: Sequence[str] = (),
        max_time_s: float | None = None,
        prompts: Sequence[int] | None = None,
        inputs: int = 0,
        reuse: bool = False,
    ) -> Report:
        """Search the schedules of faults for the smallest ones that break a promise of any invariant there is.

        Args:
            options: how.
            budget: at most so many runs.
            modes: the faults to try, by name; a choice that suits the calls when empty.
            max_time_s: begin no further runs after this, in seconds.
            prompts: indexes of the golden prompts to search; None for all.
            inputs: how many mutations of each prompt are searched after it.
            reuse: whether a model call that asks what it asked without faults is answered as it was then.
        """
        from flakestorm.api.exploring import BUDGET, explore
        from flakestorm.engine.repertoire import repertoire_for, repertoire_of

        invariants = all_invariants(self.config)
        if not invariants:
            require_invariants(self.config)
        _golden(self.config, prompts or ())
        repertoire = repertoire_of(modes) if modes else repertoire_for(invariants)
        return explore(
            self,
            invariants,
            repertoire,
            options or Options(),
            budget=budget or BUDGET,
            max_time_s=max_time_s,
            prompts=prompts,
            inputs=inputs,
            reuse=reuse,
        )

    @placed
    def shrink(
        self, case: Case, options: Options | None = None, *, budget: int | None = None, shorter: bool = False
    ) -> Shrunk:
        """The smallest form of a failing case.

        Args:
            case: what fails.
            options: how.
            budget: at most so many runs.
            shorter: whether a golden prompt is made shorter too.
        """
        from flakestorm.api.shrinking import BUDGET, shrink
        from flakestorm.engine.repertoire import repertoire_for

        everything = all_invariants(self.config)
        if case.prompt is not None and case.prompt >= len(self.config.golden_prompts):
            raise Misuse(f"the case is of golden prompt {case.prompt}, and the config has no such prompt")
        return shrink(
            self,
            everything,
            case,
            repertoire_for(everything),
            options or Options(),
            budget=budget or BUDGET,
            shorter=shorter,
        )

    @placed
    def blame(
        self,
        tape: str | Path,
        *,
        invariant: str | None = None,
        healthy_input: str | None = None,
        budget: int = BUDGET,
        options: Options | None = None,
        trust_tape: bool = False,
    ) -> Report:
        """Which step made a recorded run fail: `Report.blame`.

        Args:
            tape: the run.
            invariant: the rule to go by; the most severe that the run breaks when None.
            healthy_input: what the agent should have been given.
            budget: the most continuations.
            options: how.
            trust_tape: whether a command that the tape names is run though the tape is not known to be yours.

        Raises:
            Misuse: the run breaks no rule, there is none, or what the tape names may not be run.
            TapeDamaged: the tape was edited, cut short or added to.
        """
        from flakestorm.api.blame_case import agent_of, case_of  # few blame
        from flakestorm.api.blaming import blame
        from flakestorm.api.trusting import always
        from flakestorm.engine.blame import Terms

        work = agent_of(self, Path(tape), approve=always if trust_tape else None)
        case = case_of(work, Path(tape), invariant=invariant, healthy=healthy_input)
        return blame(work, case, options or Options(), Terms(budget=budget))

    @placed
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

    @placed
    def probe(self, options: Options | None = None) -> tuple[Report, Census]:
        """Ask the agent its first golden prompt, without chaos, judged by nothing but whether it completes.

        Returns:
            The report, and what was seen at its boundary.
        """
        completes = Invariant(type="completes", id="completes", severity="critical")
        plan = make_plan(
            "verify", scenarios=[BASELINE], invariants=[completes], prompts=self.config.golden_prompts, only=[0]
        )
        hub = hub_of(self.config)
        report = carry_out(self, plan, Gate("single"), options or Options(), hub)
        return report, hub.census()

    @placed
    def check(self, options: Options | None = None) -> Plan:
        """Check all that needs no run; gives what `contract` would run (of the options, `trials` counts).

        Raises:
            ConfigError: a mode or type is not available, or a setting makes no sense; names file and line.
            Misuse: the same of the agent.
        """
        from flakestorm.api.checking import check  # what runs is checked as it is made ready

        return check(self, self.contract_plan(options or Options()))

    def _chaos(self, profile: str | None) -> Scenario:
        """The profile's faults, else those of the config's `chaos` block."""
        if profile is not None:
            from flakestorm.faults.profiles import load as load_profile

            return load_profile(profile)
        if self.config.chaos is not None:
            return Scenario(name="chaos", **asdict(self.config.chaos))
        raise ConfigError(
            "there is no chaos to apply: add a 'chaos' block to the config or name a profile "
            "(`flakestorm profiles` lists them)",
            key="chaos",
        )


def _open(tape: str | Path) -> Tape:
    from flakestorm.tape.reader import Tape  # few runs have one

    return Tape.open(tape)


def _golden(config: Config, chosen: Sequence[int]) -> Sequence[str]:
    """The golden prompts, once it is sure that these are among them."""
    golden = config.golden_prompts
    for index in chosen:
        if not 0 <= index < len(golden):
            raise Misuse(f"there is no golden prompt {index}: they are numbered 0 to {len(golden) - 1}")
    return golden
