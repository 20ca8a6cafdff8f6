"""`flakestorm.yaml` as data: every block, key, default and bound.

Every model forbids unknown keys. The models hold the whole vocabulary of the format; whether a mode or an invariant
type is available is answered by the registry that implements it, when it is built. The larger blocks have modules of
their own (`agents`, `faults`, `invariants`, `replays`); all of them are imported from here.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, field
from msgspec.structs import replace

from flakestorm.config.agents import Agent, Model
from flakestorm.config.base import Count, Milliseconds, Placed, Probability, Severity, Strict, When
from flakestorm.config.faults import Chaos, ContextAttack, Fault, LlmFault, Scenario, ToolFault
from flakestorm.config.invariants import Invariant, InvariantType
from flakestorm.config.replays import (
    LangfuseFile,
    LangSmithFilter,
    LangSmithProject,
    LangSmithRun,
    Replays,
    ReplaySession,
    ToolResponse,
    TraceFile,
)
from flakestorm.config.vocabulary import MUTATION_WEIGHTS
from flakestorm.core.conversation import prompt_of

__all__ = [
    "MUTATION_WEIGHTS",
    "Advanced",
    "Agent",
    "Boundary",
    "Certificate",
    "Chaos",
    "Config",
    "ContextAttack",
    "Contract",
    "Count",
    "Fault",
    "Invariant",
    "InvariantType",
    "LangSmithFilter",
    "LangSmithProject",
    "LangSmithRun",
    "LangfuseFile",
    "LatencyLimits",
    "LlmFault",
    "Load",
    "Milliseconds",
    "Model",
    "Mutations",
    "Output",
    "Probability",
    "RateLimit",
    "ReplaySession",
    "Replays",
    "Scenario",
    "Scoring",
    "Severity",
    "Strict",
    "ToolFault",
    "ToolResponse",
    "TraceFile",
    "When",
]


class Mutations(Strict, frozen=True, kw_only=True):
    """How golden prompts are transformed."""

    count: Annotated[
        Annotated[int, Meta(ge=1)], Meta(description="mutations per golden prompt; at most 50 in version 1.0")
    ] = 10
    types: Annotated[
        list[str],
        Meta(
            description="which types of mutation",
            extra_json_schema={"items": {"anyOf": [{"enum": list(MUTATION_WEIGHTS)}, {"type": "string"}]}},
        ),
    ] = field(
        default_factory=lambda: [
            "paraphrase",
            "noise",
            "tone_shift",
            "prompt_injection",
            "encoding_attacks",
            "context_manipulation",
            "length_extremes",
        ]
    )
    weights: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]],
        Meta(description="weights of types in the robustness score, where the default is not wanted"),
    ] = {}
    custom_templates: Annotated[
        dict[str, str], Meta(description="mutations of your own, name -> text with {prompt}")
    ] = {}
    engine: Annotated[
        Literal["builtin", "llm"],
        Meta(description="who writes the mutations: built-in operators (no model needed), or `model`"),
    ] = "builtin"
    strategy: Annotated[
        Literal["uniform", "adaptive"],
        Meta(description="uniform: all types alike; adaptive: more of what breaks the agent"),
    ] = "uniform"


class Contract(Strict, frozen=True, kw_only=True):
    """Named invariants x scenarios."""

    name: Annotated[str, Meta(description="the contract's name")]
    description: Annotated[str | None, Meta(description="what it promises, in words")] = None
    invariants: Annotated[list[Invariant], Meta(description="the rules")] = []
    chaos_matrix: Annotated[list[Scenario], Meta(description="the scenarios; one without faults is the control")] = []
    trials: Annotated[Annotated[int, Meta(ge=1)], Meta(description="runs of each cell")] = 1
    generate: Annotated[
        Literal["toolmaze"] | None,
        Meta(description="toolmaze: add scenarios of explicit and implicit, transient and permanent tool faults"),
    ] = None


class Scoring(Strict, frozen=True, kw_only=True):
    """Weights of the phases in the overall score. They must sum to 1."""

    mutation: Annotated[Probability, Meta(description="weight of the robustness score")] = 0.2
    chaos: Annotated[Probability, Meta(description="weight of chaos resilience")] = 0.35
    contract: Annotated[Probability, Meta(description="weight of contract resilience")] = 0.35
    replay: Annotated[Probability, Meta(description="weight of the replayed sessions")] = 0.1

    def __post_init__(self) -> None:
        total = self.mutation + self.chaos + self.contract + self.replay
        if abs(total - 1.0) > 0.001:
            raise ValueError(f"the weights must sum to 1.0, but sum to {total:g}")


class Output(Strict, frozen=True, kw_only=True):
    """Where reports go, and in which form."""

    format: Annotated[
        Literal["html", "json", "terminal", "junit", "markdown", "sarif"], Meta(description="form of the report")
    ] = "html"
    path: Annotated[str, Meta(description="folder the reports are written to")] = "./reports"
    filename_template: Annotated[str | None, Meta(description="name of the report file")] = None


class RateLimit(Strict, frozen=True, kw_only=True):
    """How quickly the runs of a command are started. One budget, whatever makes the runs."""

    calls_per_minute: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="model calls that may go out in a minute, on average; a run counts for at least one"),
    ] = None
    tokens_per_minute: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="tokens that model calls may use in a minute, on average, as their replies count them"),
    ] = None
    max_hold_ms: Annotated[
        Milliseconds,
        Meta(
            description="how long the starts of runs wait, at most, when a model or tool itself, and no fault, answers "
            "429, or 503 with a time to wait, in milliseconds; 0: they do not wait"
        ),
    ] = 60000


class Advanced(Strict, frozen=True, kw_only=True):
    """How runs are carried out."""

    concurrency: Annotated[Annotated[int, Meta(ge=1, le=100)], Meta(description="runs at the same time")] = 10
    retries: Annotated[
        Annotated[int, Meta(ge=0, le=5)], Meta(description="repeats of a request that failed to reach the agent")
    ] = 2
    seed: Annotated[
        Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None,  # reports hold it as JSON, where more is not read alike
        Meta(description="seed of every random choice; default: a new one, which is printed"),
    ] = None
    rate_limit: Annotated[RateLimit, Meta(description="how quickly runs are started")] = field(
        default_factory=RateLimit
    )


class LatencyLimits(Strict, frozen=True, kw_only=True):
    """How long answers may take under load, in milliseconds, by percentile.

    A level keeps a limit when the whole 95% interval of its percentile does.
    """

    p50: Annotated[Annotated[float, Meta(gt=0)] | None, Meta(description="the median; needs 6 runs of each level")] = (
        None
    )
    p90: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="the 90th percentile; needs 36 runs of each level")
    ] = None
    p95: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="the 95th percentile; needs 72 runs of each level")
    ] = None
    p99: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="the 99th percentile; needs 368 runs of each level")
    ] = None

    @property
    def limits(self) -> tuple[tuple[int, float], ...]:
        """The limits that there are: percent, and milliseconds."""
        every = ((50, self.p50), (90, self.p90), (95, self.p95), (99, self.p99))
        return tuple((percent, ms) for percent, ms in every if ms is not None)


class Load(Strict, frozen=True, kw_only=True):
    """How many users `load` puts on the agent at once, or how many it lets come in a second, and what must hold then.

    With this block, `ci` has it as a phase.
    """

    users: Annotated[
        Annotated[list[Annotated[int, Meta(ge=1, le=500)]], Meta(min_length=1)],
        Meta(description="users at the same time, level by level, each more than the one before"),
    ] = field(default_factory=lambda: [1, 10, 100])
    rates: Annotated[
        list[Annotated[float, Meta(gt=0, le=1000)]],
        Meta(
            description="in place of users: how many new ones come in a second, whether or not others have been "
            "answered, level by level, each more than the one before"
        ),
    ] = []
    runs: Annotated[
        Annotated[int, Meta(ge=1)],
        Meta(description="runs of each level; there are never fewer than it has users, nor than there are prompts"),
    ] = 40
    min_pass_rate: Annotated[
        Probability | None,
        Meta(description="the least share of passed runs, under load, for invariants that say none themselves"),
    ] = None
    max_ms: Annotated[
        LatencyLimits, Meta(description="latency limits that every level must keep, e.g. {p95: 2000}")
    ] = field(default_factory=LatencyLimits)

    def __post_init__(self) -> None:
        if sorted(set(self.users)) != self.users:
            raise ValueError("the levels of users must rise, for example [1, 10, 100]")
        if sorted(set(self.rates)) != self.rates:
            raise ValueError("the rates must rise, for example [1, 5, 20]")


class Certificate(Strict, frozen=True, kw_only=True):
    """What a certificate says beside its scores."""

    tester_name: Annotated[str | None, Meta(description="who vouches for the run")] = None
    pass_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=100)] | None, Meta(description="the least overall score, 0 to 100")
    ] = None
    output_format: Annotated[Literal["html", "pdf"], Meta(description="form of the certificate")] = "html"


class Boundary(Strict, frozen=True, kw_only=True):
    """What the boundary should know about the agent's world."""

    tools: Annotated[
        dict[str, str], Meta(description="names for plain-HTTP tools: tool name -> glob on the outbound URL")
    ] = {}
    redact: Annotated[
        list[str], Meta(description="further secrets to keep off tapes: regular expressions or JSON paths")
    ] = []
    match: Annotated[
        Literal["renamed", "strict", "scored"],
        Meta(description="how closely a call must agree with the recorded one on replay"),
    ] = "renamed"
    allow_live: Annotated[bool, Meta(description="on replay, let calls that are not on the tape go out")] = False


class Config(Placed, frozen=True, kw_only=True):
    """The whole file."""

    version: Annotated[Literal["1.0", "2.0"], Meta(description='"1.0" (mutations only) or "2.0"')] = "1.0"
    agent: Annotated[Agent, Meta(description="the agent under test")]
    model: Annotated[Model | None, Meta(description="the model that writes mutations and judges")] = None
    mutations: Annotated[Mutations, Meta(description="how golden prompts are transformed")] = field(
        default_factory=Mutations
    )
    written_prompts: Annotated[
        Annotated[list[str | Annotated[list[str], Meta(min_length=1)]], Meta(min_length=1)],
        Meta(description="inputs that should work; a list is a conversation, asked turn by turn"),
    ] = field(name="golden_prompts")
    invariants: Annotated[list[Invariant], Meta(description="rules for runs outside the contract")] = []
    chaos: Annotated[Chaos | None, Meta(description="faults for `chaos` and `run --chaos`")] = None
    contract: Annotated[Contract | None, Meta(description="invariants x scenarios, for `contract run`")] = None
    chaos_matrix: Annotated[
        list[Scenario], Meta(description="the scenarios, where the contract has none of its own")
    ] = []
    replays: Annotated[Replays, Meta(description="incidents, for `replay run`")] = field(default_factory=Replays)
    scoring: Annotated[Scoring, Meta(description="weights of the phases in the overall score")] = field(
        default_factory=Scoring
    )
    output: Annotated[Output, Meta(description="where reports go")] = field(default_factory=Output)
    advanced: Annotated[Advanced, Meta(description="how runs are carried out")] = field(default_factory=Advanced)
    load: Annotated[
        Load, Meta(description="how many users at once, for `load`; with this block, `ci` has it as a phase")
    ] = field(default_factory=Load)
    certificate: Annotated[Certificate, Meta(description="what a certificate says")] = field(
        default_factory=Certificate
    )
    boundary: Annotated[Boundary, Meta(description="what the boundary should know")] = field(default_factory=Boundary)

    @classmethod
    def _spelled(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """`version: 1.0` without quotes is a number to YAML."""
        version = data.get("version")
        if isinstance(version, bool) or not isinstance(version, (int, float)):
            return data
        return {**data, "version": f"{float(version):.1f}" if float(version) in (1.0, 2.0) else str(version)}

    @property
    def golden_prompts(self) -> list[str]:
        """The inputs that should work, those of several turns as a `Conversation`."""
        return [prompt_of(written) for written in self.written_prompts]

    @property
    def folder(self) -> str:
        """The folder of the file this was loaded from; relative paths in the config are relative to it."""
        return str(vars(self).get("_folder", "."))

    def at(self, folder: str) -> Self:
        """The same, loaded from this folder."""
        placed = replace(self)
        vars(placed)["_folder"] = folder
        return placed
