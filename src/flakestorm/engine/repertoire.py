"""Which faults a search tries at which calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flakestorm.config.model import Invariant
from flakestorm.config.vocabulary import CONTEXT_ATTACKS, LLM_MODES, TOOL_MODES
from flakestorm.core.registry import nearest
from flakestorm.core.site import Kind, Site
from flakestorm.engine.atoms import Atom, planned_of
from flakestorm.errors import Misuse

__all__ = ["ALIKE", "LASTING", "Repertoire", "repertoire_for", "repertoire_of"]

TOOL = (
    "error", "timeout", "connection_reset", "timeout_after_commit", "empty", "malformed", "slow:1000",
)  # fmt: skip
"""What is done to a tool by default: it refuses, is silent, breaks off, works and is silent, says nothing, says what
nobody can read, is late."""

MCP = (*TOOL, "session_lost")

LLM = (
    "rate_limit", "server_error", "timeout", "truncated_response:5", "empty", "bad_tool_call:invalid_json",
    "stream_cut",
)  # fmt: skip
"""What is done to a model by default: it refuses, breaks, is silent, stops in mid-sentence, says nothing, asks for a
tool in JSON that is none, is cut off."""

LASTING = frozenset(("error", "timeout", "connection_reset", "empty", "rate_limit", "server_error", "overloaded"))
"""Modes that are also tried at all calls of a name at once, as in an outage."""

INJECTION = "indirect_injection"
LIE = "wrong_value"

ALIKE: Mapping[str, tuple[str, ...]] = {"canary_absent": (INJECTION,), "grounded": (LIE,)}
"""Modes that are tried where an invariant of this type can judge them. A lie that an agent could not know makes it
break other rules without its fault, and an injection shows only in what it says."""


@dataclass(frozen=True, slots=True)
class Repertoire:
    """The faults to try, by kind of call, as they stand behind `=` in `--inject`."""

    tool: tuple[str, ...] = TOOL
    mcp: tuple[str, ...] = MCP
    llm: tuple[str, ...] = LLM

    def faults(self, site: Site) -> tuple[str, ...]:
        """Those for this call."""
        return self._of(site.kind)

    def lasting(self, site: Site) -> tuple[str, ...]:
        """Those of them that may last."""
        return tuple(fault for fault in self._of(site.kind) if fault.partition(":")[0] in LASTING)

    def _of(self, kind: Kind) -> tuple[str, ...]:
        if kind == "llm":
            return self.llm
        if kind == "mcp":
            return self.mcp
        return self.tool if kind in ("tool", "http") else ()


def repertoire_for(invariants: Iterable[Invariant]) -> Repertoire:
    """The default faults, and those that one of these invariants can judge."""
    more = tuple(dict.fromkeys(mode for i in invariants for mode in ALIKE.get(i.type, ())))
    return Repertoire((*TOOL, *more), (*MCP, *more), LLM)


def repertoire_of(modes: Sequence[str]) -> Repertoire:
    """Exactly these modes, each for the calls it can act on.

    Args:
        modes: names, or names with their argument, e.g. `error:500`.

    Raises:
        Misuse: there is no such mode.
    """
    tool, mcp, llm = list[str](), list[str](), list[str]()
    for fault in modes:
        mode = fault.partition(":")[0].partition(",")[0]
        known = sorted(TOOL_MODES.words | LLM_MODES.words | CONTEXT_ATTACKS.words)
        for kind, into in (("tool", tool), ("mcp", mcp), ("llm", llm)):
            words = (LLM_MODES if kind == "llm" else TOOL_MODES).words
            if mode in words or (mode == INJECTION and kind != "llm"):
                planned_of(Atom(Site("llm" if kind == "llm" else "tool", "x", 1), fault)).check()
                into.append(fault)
        if fault not in (*tool, *mcp, *llm):
            close = nearest(mode, known)
            hint = f"did you mean {close!r}? " if close else ""
            raise Misuse(f"--modes: there is no mode {mode!r} for calls; {hint}known: {', '.join(known)}")
    return Repertoire(tuple(tool), tuple(mcp), tuple(llm))
