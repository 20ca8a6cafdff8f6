"""`flakestorm.yaml` as data: every block, key, default and bound.

Every model forbids unknown keys. The models hold the whole vocabulary of the format; whether a mode or an invariant
type is available is answered by the registry that implements it, when it is built.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

__all__ = [
    "Advanced",
    "Agent",
    "Boundary",
    "Certificate",
    "Chaos",
    "Config",
    "ContextAttack",
    "Contract",
    "Fault",
    "Invariant",
    "LlmFault",
    "Model",
    "Mutations",
    "Output",
    "ReplaySession",
    "Replays",
    "Scenario",
    "Scoring",
    "Severity",
    "ToolFault",
    "ToolResponse",
    "When",
]

Severity: TypeAlias = Literal["critical", "high", "medium", "low"]
When: TypeAlias = Literal["always", "tool_faults_active", "llm_faults_active", "any_chaos_active", "no_chaos"]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Milliseconds = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]

InvariantType: TypeAlias = str  # a plug-in may add any name; the registry knows the built-in ones

MUTATION_WEIGHTS: dict[str, float] = {
    "paraphrase": 1.0,
    "noise": 0.8,
    "tone_shift": 0.9,
    "prompt_injection": 1.5,
    "encoding_attacks": 1.3,
    "context_manipulation": 1.1,
    "length_extremes": 1.2,
    "custom": 1.0,
    "multi_turn_attack": 1.4,
    "advanced_jailbreak": 2.0,
    "semantic_similarity_attack": 1.3,
    "format_poisoning": 1.6,
    "language_mixing": 1.2,
    "token_manipulation": 1.5,
    "temporal_attack": 1.1,
    "http_header_injection": 1.7,
    "payload_size_attack": 1.4,
    "content_type_confusion": 1.5,
    "query_parameter_poisoning": 1.6,
    "request_method_attack": 1.3,
    "protocol_level_attack": 1.8,
    "resource_exhaustion": 1.5,
    "concurrent_request_pattern": 1.4,
    "timeout_manipulation": 1.3,
}


class Strict(BaseModel):
    """A block of the configuration: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", validate_default=False, frozen=True)


class Agent(Strict):
    """How the agent is run and how its answer is read."""

    endpoint: str = ""
    type: str = "http"
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    request_template: str | None = None
    response_path: str | None = None
    query_params: dict[str, str] = Field(default_factory=dict)
    parse_structured_input: bool = True
    timeout: int = Field(30000, ge=1000, le=300000, description="milliseconds for one answer")
    headers: dict[str, str] = Field(default_factory=dict)
    reset_endpoint: str | None = None
    reset_function: str | None = None
    start: str | list[str] | None = None
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    ready: str | int | None = None
    tools: str | None = None
    mcp: dict[str, str | list[str]] = Field(default_factory=dict)

    @field_validator("method", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _complete(self) -> Agent:
        if self.type == "command":
            if not self.start:
                raise ValueError("an agent of type 'command' needs 'start': the command to run for each input")
        elif not self.endpoint:
            raise ValueError(f"an agent of type {self.type!r} needs 'endpoint'")
        return self


class Model(Strict):
    """The model that writes mutations and judges; not the agent's own."""

    DEFAULT_OLLAMA: ClassVar[str] = "http://localhost:11434"

    provider: Literal["ollama", "openai", "anthropic", "google", "none"] = "ollama"
    name: str = "qwen3:8b"
    base_url: str | None = None
    api_key: str | None = None
    temperature: float = Field(0.8, ge=0.0, le=2.0)


class Mutations(Strict):
    """How golden prompts are transformed."""

    count: int = Field(10, ge=1)
    types: list[str] = Field(
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
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    custom_templates: dict[str, str] = Field(default_factory=dict)
    engine: Literal["builtin", "llm"] = "builtin"
    strategy: Literal["uniform", "adaptive"] = "uniform"


class Invariant(Strict):
    """One rule. Which of the type's own fields are needed is checked by `needs`."""

    type: InvariantType
    id: str | None = None
    description: str | None = None
    severity: Severity = "medium"
    when: When = "always"
    negate: bool = False
    probes: list[str] = Field(default_factory=list)
    min_pass_rate: Probability | None = None
    value: str | None = None
    values: list[str] | None = None
    pattern: str | None = None
    patterns: list[str] | None = None
    schema_: dict[str, Any] | str | None = Field(None, alias="schema")
    max_ms: int | None = Field(None, gt=0)
    expected: str | None = None
    threshold: Probability | None = None
    baseline: str | None = None
    similarity_threshold: Probability | None = None
    entities: list[str] | None = None
    dangerous_prompts: bool | None = None
    tool: str | None = None
    args: dict[str, Any] | None = None
    before: str | None = None
    after: str | None = None
    kind: str | None = None
    limit: Count | None = None
    key: str | None = None
    window_ms: Milliseconds | None = None
    function: str | None = None
    rubric: str | None = None

    @field_validator("severity", "when", mode="before")
    @classmethod
    def _default(cls, value: Any, info: Any) -> Any:
        return {"severity": "medium", "when": "always"}[info.field_name] if value is None else value


class Fault(Strict):
    """What every fault has: which calls it is for, and when it fires.

    Triggers combine: a call must satisfy all that are given. Occurrences count the calls that the fault's own filter
    matches, from 1.
    """

    match_url: str | None = None
    probability: Probability | None = None
    after_calls: Count | None = None
    calls: list[Annotated[int, Field(ge=1)]] | None = None
    times: Annotated[int, Field(ge=1)] | None = None
    site: str | None = None


class ToolFault(Fault):
    """Breaks a tool's call or its result."""

    tool: str = "*"
    mode: str
    where: Literal["call", "result"] | None = None
    delay_ms: Milliseconds | None = None
    error_code: int | None = Field(None, ge=100, le=599)
    message: str | None = None
    payload: str | None = None


class LlmFault(Fault):
    """Breaks a model's reply. `model` narrows it to models of this name (a glob)."""

    mode: str
    model: str = "*"
    delay_ms: Milliseconds | None = None
    max_tokens: Count | None = None
    retry_after_ms: Milliseconds | None = None
    message: str | None = None
    error_code: int | None = Field(None, ge=100, le=599)
    drift_type: (
        Literal["json_field_rename", "verbosity_shift", "format_change", "refusal_rephrase", "tone_shift"] | None
    ) = None
    severity: Literal["subtle", "moderate", "significant"] | None = None
    direction: Literal["expand", "compress"] | None = None
    factor: float | None = Field(None, gt=0)
    after_events: Count | None = None
    first_token_ms: Milliseconds | None = None
    per_chunk_ms: Milliseconds | None = None


class ContextAttack(Fault):
    """Hostile text in what the model is told."""

    type: Literal["indirect_injection", "memory_poisoning", "overflow", "conflicting_context", "injection_via_context"]
    enabled: bool = True
    tool: str = "*"
    inject_tokens: Count | None = None
    payloads: list[str] | None = None
    payload: str | None = None
    trigger_probability: Probability | None = None
    inject_at: str | None = None
    strategy: Literal["prepend", "append", "replace"] | None = None


class Chaos(Strict):
    """Faults, in three lists. `context_attacks` may also be a mapping keyed by type."""

    tool_faults: list[ToolFault] = Field(default_factory=list)
    llm_faults: list[LlmFault] = Field(default_factory=list)
    context_attacks: list[ContextAttack] = Field(default_factory=list)

    @field_validator("tool_faults", "llm_faults", "context_attacks", mode="before")
    @classmethod
    def _empty(cls, value: Any) -> Any:
        return [] if value is None else value

    @field_validator("context_attacks", mode="before")
    @classmethod
    def _by_type(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return [{"type": kind, **(keys or {})} for kind, keys in value.items()]
        return value


class Scenario(Chaos):
    """A named schedule in a chaos matrix; one without faults is the control."""

    name: str = Field(min_length=1)

    @property
    def chaos(self) -> bool:
        """Whether this scenario plans any fault."""
        return bool(self.tool_faults or self.llm_faults or [a for a in self.context_attacks if a.enabled])


class Contract(Strict):
    """Named invariants x scenarios."""

    name: str
    description: str | None = None
    invariants: list[Invariant] = Field(default_factory=list)
    chaos_matrix: list[Scenario] = Field(default_factory=list)
    trials: int = Field(1, ge=1)
    generate: Literal["toolmaze"] | None = None


class ToolResponse(Strict):
    """A tool's recorded reply in a replay session."""

    tool: str
    response: Any = None
    status: int | None = None
    latency_ms: Milliseconds | None = None


class ReplaySession(Strict):
    """An incident: its input, what its tools said, and the contract it must now meet."""

    id: str = ""
    name: str | None = None
    source: str | None = "manual"
    captured_at: str | None = None
    input: str = ""
    context: list[dict[str, Any]] = Field(default_factory=list)
    tool_responses: list[ToolResponse] = Field(default_factory=list)
    expected_failure: str | None = None
    contract: str = "default"
    file: str | None = None

    @model_validator(mode="after")
    def _source(self) -> ReplaySession:
        if not self.file and not (self.id and self.input):
            raise ValueError("a replay session needs either 'file', or 'id' and 'input'")
        return self


class LangSmithFilter(Strict):
    """Which runs of a LangSmith project to take."""

    status: Literal["error", "warning", "all"] = "error"
    date_range: str | None = None
    min_latency_ms: Milliseconds | None = None


class LangSmithProject(Strict):
    """Runs of a LangSmith project as sessions."""

    type: Literal["langsmith"]
    project: str
    filter: LangSmithFilter | None = None
    auto_import: bool = False


class LangSmithRun(Strict):
    """One LangSmith run as a session."""

    type: Literal["langsmith_run"]
    run_id: str


class TraceFile(Strict):
    """Runs in an exported trace file as sessions."""

    type: Literal["otel", "langfuse"]
    file: str


class Replays(Strict):
    """Replay sessions and where more come from."""

    sessions: list[ReplaySession] = Field(default_factory=list)
    sources: list[Annotated[LangSmithProject | LangSmithRun | TraceFile, Field(discriminator="type")]] = Field(
        default_factory=list
    )


class Scoring(Strict):
    """Weights of the phases in the overall score."""

    mutation: Probability = 0.20
    chaos: Probability = 0.35
    contract: Probability = 0.35
    replay: Probability = 0.10

    @model_validator(mode="after")
    def _sum(self) -> Scoring:
        total = self.mutation + self.chaos + self.contract + self.replay
        if abs(total - 1.0) > 0.001:
            raise ValueError(f"the weights must sum to 1.0, but sum to {total:g}")
        return self


class Output(Strict):
    """Where reports go, and in which form."""

    format: Literal["html", "json", "terminal", "junit", "markdown", "sarif"] = "html"
    path: str = "./reports"
    filename_template: str | None = None


class Advanced(Strict):
    """How runs are carried out."""

    concurrency: int = Field(10, ge=1, le=100)
    retries: int = Field(2, ge=0, le=5)
    seed: int | None = None


class Certificate(Strict):
    """What a certificate says beside its scores."""

    tester_name: str | None = None
    pass_threshold: float | None = Field(None, ge=0, le=100)
    output_format: Literal["html", "pdf"] = "html"


class Boundary(Strict):
    """What the boundary should know about the agent's world."""

    tools: dict[str, str] = Field(default_factory=dict, description="tool name -> glob on the outbound URL")
    redact: list[str] = Field(default_factory=list)
    match: Literal["renamed", "strict", "scored"] = "renamed"
    allow_live: bool = False


class Config(Strict):
    """The whole file."""

    version: Literal["1.0", "2.0"] = "1.0"
    agent: Agent
    model: Model = Field(default_factory=lambda: Model())
    mutations: Mutations = Field(default_factory=lambda: Mutations())
    golden_prompts: list[str] = Field(min_length=1)
    invariants: list[Invariant] = Field(default_factory=list)
    chaos: Chaos | None = None
    contract: Contract | None = None
    chaos_matrix: list[Scenario] = Field(default_factory=list)
    replays: Replays = Field(default_factory=lambda: Replays())
    scoring: Scoring = Field(default_factory=lambda: Scoring())
    output: Output = Field(default_factory=lambda: Output())
    advanced: Advanced = Field(default_factory=lambda: Advanced())
    certificate: Certificate = Field(default_factory=lambda: Certificate())
    boundary: Boundary = Field(default_factory=lambda: Boundary())

    _folder: str = PrivateAttr(".")

    @property
    def folder(self) -> str:
        """The folder of the file this was loaded from; relative paths in the config are relative to it."""
        return self._folder
