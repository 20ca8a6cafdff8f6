"""`flakestorm.yaml` as data: every block, key, default and bound.

Every model forbids unknown keys. The models hold the whole vocabulary of the format; whether a mode or an invariant
type is available is answered by the registry that implements it, when it is built. The larger blocks have modules of
their own (`agents`, `faults`, `invariants`, `replays`); all of them are imported from here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from flakestorm.config.agents import Agent, Model
from flakestorm.config.base import Count, Milliseconds, Probability, Severity, Strict, When
from flakestorm.config.faults import Chaos, ContextAttack, Fault, LlmFault, Scenario, ToolFault
from flakestorm.config.invariants import Invariant, InvariantType
from flakestorm.config.replays import (
    LangSmithFilter,
    LangSmithProject,
    LangSmithRun,
    Replays,
    ReplaySession,
    ToolResponse,
    TraceFile,
)
from flakestorm.config.vocabulary import MUTATION_WEIGHTS

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
    "LlmFault",
    "Milliseconds",
    "Model",
    "Mutations",
    "Output",
    "Probability",
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


class Mutations(Strict):
    """How golden prompts are transformed."""

    count: int = Field(10, ge=1, description="mutations per golden prompt; at most 50 in version 1.0")
    types: list[str] = Field(
        default_factory=lambda: [
            "paraphrase",
            "noise",
            "tone_shift",
            "prompt_injection",
            "encoding_attacks",
            "context_manipulation",
            "length_extremes",
        ],
        description="which types of mutation",
        json_schema_extra={"items": {"anyOf": [{"enum": list(MUTATION_WEIGHTS)}, {"type": "string"}]}},
    )
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="weights of types in the robustness score, where the default is not wanted"
    )
    custom_templates: dict[str, str] = Field(
        default_factory=dict, description="mutations of your own, name -> text with {prompt}"
    )
    engine: Literal["builtin", "llm"] = Field(
        "builtin", description="who writes the mutations: built-in operators (no model needed), or `model`"
    )
    strategy: Literal["uniform", "adaptive"] = Field(
        "uniform", description="uniform: all types alike; adaptive: more of what breaks the agent"
    )


class Contract(Strict):
    """Named invariants x scenarios."""

    name: str = Field(description="the contract's name")
    description: str | None = Field(None, description="what it promises, in words")
    invariants: list[Invariant] = Field(default_factory=list, description="the rules")
    chaos_matrix: list[Scenario] = Field(
        default_factory=list, description="the scenarios; one without faults is the control"
    )
    trials: int = Field(1, ge=1, description="runs of each cell")
    generate: Literal["toolmaze"] | None = Field(
        None, description="toolmaze: add scenarios of explicit and implicit, transient and permanent tool faults"
    )


class Scoring(Strict):
    """Weights of the phases in the overall score. They must sum to 1."""

    mutation: Probability = Field(0.20, description="weight of the robustness score")
    chaos: Probability = Field(0.35, description="weight of chaos resilience")
    contract: Probability = Field(0.35, description="weight of contract resilience")
    replay: Probability = Field(0.10, description="weight of the replayed sessions")

    @model_validator(mode="after")
    def _sum(self) -> Scoring:
        total = self.mutation + self.chaos + self.contract + self.replay
        if abs(total - 1.0) > 0.001:
            raise ValueError(f"the weights must sum to 1.0, but sum to {total:g}")
        return self


class Output(Strict):
    """Where reports go, and in which form."""

    format: Literal["html", "json", "terminal", "junit", "markdown", "sarif"] = Field(
        "html", description="form of the report"
    )
    path: str = Field("./reports", description="folder the reports are written to")
    filename_template: str | None = Field(None, description="name of the report file")


class Advanced(Strict):
    """How runs are carried out."""

    concurrency: int = Field(10, ge=1, le=100, description="runs at the same time")
    retries: int = Field(2, ge=0, le=5, description="repeats of a request that failed to reach the agent")
    seed: int | None = Field(None, description="seed of every random choice; default: a new one, which is printed")


class Certificate(Strict):
    """What a certificate says beside its scores."""

    tester_name: str | None = Field(None, description="who vouches for the run")
    pass_threshold: float | None = Field(None, ge=0, le=100, description="the least overall score, 0 to 100")
    output_format: Literal["html", "pdf"] = Field("html", description="form of the certificate")


class Boundary(Strict):
    """What the boundary should know about the agent's world."""

    tools: dict[str, str] = Field(
        default_factory=dict, description="names for plain-HTTP tools: tool name -> glob on the outbound URL"
    )
    redact: list[str] = Field(
        default_factory=list, description="further secrets to keep off tapes: regular expressions or JSON paths"
    )
    match: Literal["renamed", "strict", "scored"] = Field(
        "renamed", description="how closely a call must agree with the recorded one on replay"
    )
    allow_live: bool = Field(False, description="on replay, let calls that are not on the tape go out")


class Config(Strict):
    """The whole file."""

    version: Literal["1.0", "2.0"] = Field("1.0", description='"1.0" (mutations only) or "2.0"')
    agent: Agent = Field(description="the agent under test")
    model: Model = Field(default_factory=lambda: Model(), description="the model that writes mutations and judges")
    mutations: Mutations = Field(default_factory=lambda: Mutations(), description="how golden prompts are transformed")
    golden_prompts: list[str] = Field(min_length=1, description="inputs that should work")
    invariants: list[Invariant] = Field(default_factory=list, description="rules for runs outside the contract")
    chaos: Chaos | None = Field(None, description="faults for `chaos` and `run --chaos`")
    contract: Contract | None = Field(None, description="invariants x scenarios, for `contract run`")
    chaos_matrix: list[Scenario] = Field(
        default_factory=list, description="the scenarios, where the contract has none of its own"
    )
    replays: Replays = Field(default_factory=lambda: Replays(), description="incidents, for `replay run`")
    scoring: Scoring = Field(
        default_factory=lambda: Scoring(), description="weights of the phases in the overall score"
    )
    output: Output = Field(default_factory=lambda: Output(), description="where reports go")
    advanced: Advanced = Field(default_factory=lambda: Advanced(), description="how runs are carried out")
    certificate: Certificate = Field(default_factory=lambda: Certificate(), description="what a certificate says")
    boundary: Boundary = Field(default_factory=lambda: Boundary(), description="what the boundary should know")

    _folder: str = PrivateAttr(".")

    @field_validator("version", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        """`version: 1.0` without quotes is a number to YAML."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return f"{float(value):.1f}" if float(value) in (1.0, 2.0) else str(value)
        return value

    @property
    def folder(self) -> str:
        """The folder of the file this was loaded from; relative paths in the config are relative to it."""
        return self._folder
