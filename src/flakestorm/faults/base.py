"""What a fault is, to those who write one.

A fault is a function from its settings to an interceptor. It decides *what* happens; *when* is the schedule's
business (`faults/schedule.py`), so no fault knows about probabilities or occurrences. The smallest one does nothing::

    @tool_faults.add("noop")
    def noop(spec: ToolFault, scene: Scene) -> Interceptor:
        def stage(call: Call) -> Flow:
            return (yield from inward(call))
        return stage

It never fires, so a run with it alone is inconclusive. One that answers in the tool's place says so::

    @tool_faults.add("teapot")
    def teapot(spec: ToolFault, scene: Scene) -> Interceptor:
        def stage(call: Call) -> Flow:
            scene.fired("418")
            return Reply(418)
            yield call  # never reached: the tool is not asked
        return stage

A built-in mode also has its line in `modes.py`, by which it is found without being imported. A fault of another
distribution is decorated by `plugins.fault` instead, and found by its entry point.

`scene.fired()` must be called at the moment the fault takes effect and not before: a truncation that finds nothing to
cut did not fire, and a run in which nothing fired proves nothing. A fault that changes a body does so by a transducer
(`Reply.pipe`) and fires when the change is emitted; it must not read the body itself.

A tool fault may have a second form, for tools whose calls no seam can see: what it makes of the tool's *result* on its
way to the model. That is a function of the result, registered under the same mode; whether what it gives takes effect
is known later, so it fires nothing::

    @result_faults.add("teapot")
    def teapot(spec: ToolFault, scene: Scene, told: Told) -> Change:
        return Change("418", Told("I'm a teapot", failed=True), replaces=True)

A context attack on the conversation changes no reply at all. It is a pure function as well, asked when a model call
could be the first to carry it; where the text then stands in later requests is not its business
(`faults/entering.py`)::

    @conversation_attacks.add("graffiti")
    def graffiti(spec: ContextAttack, choices: Choices, heard: Heard) -> Entry:
        return Entry("a line on the wall", "Kilroy was here.")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import field

from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Canary
from flakestorm.core.pipeline import Interceptor, inward
from flakestorm.core.record import Record
from flakestorm.core.registry import Registry
from flakestorm.core.site import Site
from flakestorm.faults.modes import CONTEXT, CONTEXT_RESULT, CONVERSATION, LLM, RESULT, TOOL, homes
from flakestorm.faults.plugins import FaultRegistry

if TYPE_CHECKING:  # what calls are made of is known to those who meet one
    from flakestorm.faults.sessions import Sessions
    from flakestorm.wire.context import Conversation, Strategy
    from flakestorm.wire.results import Result, Told

__all__ = [
    "Change",
    "ContextMode",
    "ConversationMode",
    "Entry",
    "Heard",
    "LlmMode",
    "ResultAttack",
    "ResultMode",
    "Scene",
    "ToolMode",
    "context_attacks",
    "conversation_attacks",
    "inward",
    "llm_faults",
    "result_attacks",
    "result_faults",
    "tool_faults",
]


def _sessions() -> Sessions:
    from flakestorm.faults.sessions import Sessions

    return Sessions()


class Scene(Record, frozen=True):
    """Where and with what luck a fault acts.

    Args:
        site: the call it was scheduled for.
        choices: draws of this fault at this site, keyed by (seed, scenario, prompt, trial, site, fault).
        fired: write the fault into the run's ledger, with a few words on what it did. Further calls are ignored.
        plant: note the canary that an injected instruction carries (`faults/canary.py`).
        promised: the output schema of the MCP tool that is called, where the run has seen one; else None.
        idle: write down why the fault has nothing to do here, in words that complete "wrong_value did nothing: ...". A
            user whose run is inconclusive reads it.
        also: write down that the fault takes effect at another call too, where it lasts longer than one.
        sessions: the MCP sessions of the run.
    """

    site: Site
    choices: Choices
    fired: Callable[[str], None]
    plant: Callable[[Canary], None] = lambda _: None
    promised: Mapping[str, Any] | None = None
    idle: Callable[[str], None] = lambda _: None
    also: Callable[[Site, str], None] = lambda _, __: None
    sessions: Sessions = field(default_factory=_sessions)


class Change(Record, frozen=True):
    """What a fault does to a tool's result.

    Args:
        detail: a few words on it, for the ledger.
        told: what the result tells the model instead; None leaves it as it is.
        delay_ms: how long the model call that first carries the result is held back.
        replaces: whether nothing of the tool's own result is left, so that faults further in had no effect.
        canary: what it plants by that, where it injects an instruction.
    """

    detail: str
    told: Told | None = None
    delay_ms: int = 0
    replaces: bool = False
    canary: Canary | None = None


class Heard(Record, frozen=True):
    """What a model is about to be told.

    Args:
        conversation: as the agent wrote it.
        results: the tool results in it, in conversation order.
    """

    conversation: Conversation
    results: Sequence[Result] = ()


class Entry(Record, frozen=True):
    """What a context attack puts into a conversation.

    Args:
        detail: a few words on it, for the ledger.
        text: what the model is told.
        strategy: how it joins what is there.
        in_system: whether it goes to the system prompt rather than to the newest message.
        canary: what it plants by that, where it injects an instruction.
    """

    detail: str
    text: str
    strategy: Strategy = "append"
    in_system: bool = False
    canary: Canary | None = None


ToolMode = Callable[[ToolFault, Scene], Interceptor]
ResultMode: TypeAlias = "Callable[[ToolFault, Scene, Told], Change | None]"
"""Gives None where there is nothing to change. It is asked once for each result, so it may not keep state."""
LlmMode = Callable[[LlmFault, Scene], Interceptor]
ContextMode = Callable[[ContextAttack, Scene], Interceptor]
"""Acts on a tool's call."""
ResultAttack: TypeAlias = "Callable[[ContextAttack, Scene, Told], Change | None]"
"""As `ResultMode`, for context attacks."""
ConversationMode = Callable[[ContextAttack, Choices, Heard], Entry | None]
"""Gives None where it finds nothing to act on yet; it is then asked again at the next model call that it is for."""

tool_faults: Registry[ToolMode] = FaultRegistry("tool fault mode", "tool", homes(TOOL))
result_faults: Registry[ResultMode] = FaultRegistry("fault mode of tool results", "result", homes(RESULT))
llm_faults: Registry[LlmMode] = FaultRegistry("LLM fault mode", "llm", homes(LLM))
context_attacks: Registry[ContextMode] = FaultRegistry("context attack", "context", homes(CONTEXT))
result_attacks: Registry[ResultAttack] = FaultRegistry(
    "context attack on tool results", "context_result", homes(CONTEXT_RESULT)
)
conversation_attacks: Registry[ConversationMode] = FaultRegistry("context attack", "conversation", homes(CONVERSATION))
