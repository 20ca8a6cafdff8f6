"""What an invariant sees, and how one is written.

An invariant's check is a function from its settings and a finished run to a `Verdict`. Whether it applies (`when`),
its negation, crashes and runs without output are handled once, in `contracts/matrix.py`, so a check only answers its
own question::

    @built_in("contains", "requires", needs=("value",))
    def contains(spec: Invariant, run: RunView) -> Verdict: ...

A built-in type also has its place in `_TYPES`, by which it is found without being imported.

A plug-in is a check in the entry-point group `flakestorm.invariants`; it counts as requiring something in the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import field

from flakestorm.config.model import Invariant
from flakestorm.core.answer import AgentError
from flakestorm.core.conversation import Turn
from flakestorm.core.ledger import Ledger
from flakestorm.core.record import Record
from flakestorm.core.registry import Registry
from flakestorm.core.verdict import Verdict
from flakestorm.tape.model import Exchange

if TYPE_CHECKING:
    from flakestorm.contracts.calls import ToolCall

__all__ = [
    "Check",
    "Demand",
    "RunView",
    "applies",
    "asked_of_model",
    "built_in",
    "compares",
    "demands",
    "invariants",
    "means",
    "on_both",
    "on_tape",
    "settings",
    "trajectory",
    "vets",
]


class RunView(Record, frozen=True, dict=True):
    """One finished run, as invariants see it.

    Args:
        input: the text the agent was given.
        output: its answer; empty when `error` is set.
        error: why there is no answer, or None.
        latency_ms: from input to answer.
        scenario: the scenario's name; `chaos` says whether that scenario plans any fault at all.
        ledger: which faults were planned, fired, masked, and the canaries planted.
        exchanges: the run's tape, in order of arrival.
        baseline: the output of the same prompt without chaos, where there was such a run; else None.
        visible: names (globs) of tools that some seam is known to see: those of `boundary.tools`, `agent.tools` and
            MCP servers. For any other tool, no exchange on the tape does not prove that it was not called.
        transient: indexes (`Firing.fault`) of the scenario's faults that do not last, so that trying again helps.
        opinions: what a model said about the run, by the id of the invariant that asked; two where it was asked twice.
        alike: how alike the output is in meaning to what an invariant compares it with, by that one's id: 0 to 1, or
            why nobody knows.
        held: whether the agent's calls are known to have crossed the boundary, or to have had no way around it. If not,
            the tape proves nothing.
        input_kind: whether the input is one that should work, or an attack.
        refused: whether the request was an attack on HTTP itself, and the agent turned it away with a 4xx.
        mutated: whether the input is a mutation, which `baseline` was not.
        turns: of a conversation, its turns; output, error and latency are those of the last one.
        limited: which of its calls the world, and no fault, refused for their rate, in words; empty where none was.
        starved: whether because of that the agent never got what it asked for.
        before: where one turn is judged, the exchanges of those before it; `exchanges` are its own then.
    """

    input: str
    output: str = ""
    error: AgentError | None = None
    latency_ms: float = 0.0
    scenario: str = ""
    chaos: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    exchanges: Sequence[Exchange] = ()
    baseline: str | None = None
    visible: Sequence[str] = ()
    transient: frozenset[int] = frozenset()
    opinions: Mapping[str, Sequence[Verdict]] = field(default_factory=dict)
    alike: Mapping[str, float | str] = field(default_factory=dict)
    held: bool = True
    input_kind: Literal["benign", "attack"] = "benign"
    refused: bool = False
    mutated: bool = False
    turns: Sequence[Turn] = ()
    limited: str = ""
    starved: bool = False
    before: Sequence[Exchange] = ()

    @property
    def memo(self) -> dict[str, object]:
        """What checks have worked out about this run, so that each of them need not do it again. It is no part of the
        view: one that is made from this begins anew."""
        found: dict[str, object] = vars(self).setdefault("_memo", {})
        return found

    def calls(self, tool: str = "*") -> list[ToolCall]:
        """The calls of the tools that this name or glob means, faulted ones included, in order."""
        from flakestorm.contracts.calls import calls_of  # and with it all that reads calls

        return calls_of(tool, self)


Check = Callable[[Invariant, RunView], Verdict]

_TYPES = {
    "output": (
        "contains", "contains_any", "regex", "excludes_pattern", "valid_json", "output_not_empty", "completes",
        "latency",
    ),
    "schemas": ("json_schema",),
    "trajectory": ("tool_called", "tool_not_called", "max_calls", "tool_order", "tool_args"),
    "spending": ("max_tokens", "max_cost", "no_retry_storm"),
    "side_effects": ("no_duplicate_side_effect",),
    "grounding": ("grounded",),
    "recovery": ("acknowledges_failure", "recovers"),
    "semantic": ("similarity", "behavior_unchanged"),
    "safety": ("canary_absent", "excludes_pii", "refusal_check"),
    "checks": ("check",),
    "judging": ("judge",),
}  # fmt: skip
"""Module of this room -> the types it registers. It is imported when one of them is judged by."""

invariants: Registry[Check] = Registry(
    "invariant type",
    "flakestorm.invariants",
    {name: f"{__package__}.{module}" for module, names in _TYPES.items() for name in names},
)

Demand: TypeAlias = Literal["requires", "forbids", "run"]

demands: dict[str, Demand | Callable[[Invariant], Demand]] = {}
"""What each type asks of an output: `requires` something in it (no output: fail with the agent's error), `forbids`
something (no output: inconclusive), or judges the `run` and not the output (asked in any case). A function decides by
the invariant's settings. Negating a type swaps `requires` and `forbids`. A type that is not listed counts as
`requires`."""

on_tape: set[str] = set()
"""Types whose evidence is on the tape, which is there even when the output is not. They are asked in any case, but only
what was seen counts then: that something did not happen before the agent broke off proves nothing."""

trajectory: set[str] = set()
"""Types about what the agent did on its way, or whether its answer agrees with that; others judge what came out."""

on_both: set[str] = set()
"""Types that look at both, output and tape. They too are asked in any case, with the same caution."""

settings: dict[str, tuple[str, ...]] = {}
"""The settings each type cannot do without, as fields of `Invariant`."""

asked_of_model: set[str] = set()
"""Types whose question the engine puts to the config's model before the run is judged; see `RunView.opinions`."""

compares: dict[str, Callable[[Invariant], bool]] = {}
"""Whether an invariant of a type compares a run with one of the same prompt without chaos (`RunView.baseline`), so that
there must be one before it is judged."""

means: dict[str, Callable[[Invariant, RunView], str | None]] = {}
"""What an invariant of a type that can be measured by meaning (`Invariant.measure`) compares the output with; None
where there is nothing. The engine measures before it judges; see `RunView.alike`."""

vets: dict[str, Callable[[Invariant], None]] = {}
"""Looks over a type's settings before anything is run; raises `Misuse` with what is wrong with them."""


applies: dict[str, Callable[[Invariant, RunView], bool]] = {}
"""Whether a type that is about a special situation can mean anything for a run's scenario; True when not listed."""


def built_in(
    name: str,
    demand: Demand | Callable[[Invariant], Demand],
    *,
    needs: tuple[str, ...] = (),
    evidence: Literal["output", "tape", "output by tape", "output and tape", "both"] = "output",
    vet: Callable[[Invariant], None] | None = None,
    where: Callable[[Invariant, RunView], bool] | None = None,
    against: Callable[[Invariant], bool] | None = None,
) -> Callable[[Check], Check]:
    """Decorator: register a check as the invariant type `name`.

    Args:
        name: the type, as written in a config.
        demand: what it asks of an output; see `demands`.
        needs: settings it cannot do without; see `settings`.
        evidence: where it looks: at the output; at the tape (`on_tape`); at the output, to hold it against the tape; at
            both, where a tape that nobody held proves nothing (`on_tape`); at both, whatever there is (`on_both`).
        vet: looks over the settings; see `vets`.
        where: the situation it is about; see `applies`.
        against: whether it needs a baseline; see `compares`.
    """

    def register(check: Check) -> Check:
        invariants.add(name)(check)  # first, so that a name that is taken leaves everything as it was
        demands[name] = demand
        settings[name] = needs
        if evidence in ("tape", "output and tape"):
            on_tape.add(name)
        if evidence in ("tape", "output by tape"):
            trajectory.add(name)
        if evidence == "both":
            on_both.add(name)
        if vet is not None:
            vets[name] = vet
        if where is not None:
            applies[name] = where
        if against is not None:
            compares[name] = against
        return check

    return register
