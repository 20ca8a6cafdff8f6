"""One planned fault, and its one-line form.

Reports show `tool/search=error:503,after_calls=2`; command lines take `--inject 'tool/search#1=error:503'`. Both read
back as they were written (`line.py` says how settings are spelled)::

    TARGET=MODE              tool/search#1=timeout
    TARGET=MODE:ARG          tool/search#1=error:503      llm/gpt-4o#2=truncated_response:20
    TARGET=MODE:ARG,KEY=...  tool/search#1=error:503,message=back soon

ARG is the mode's main setting (`modes.py`). TARGET is a site, or a kind with the name or glob of a tool or model;
`tool/*#2=error` is `tool/*=error,calls=2`: the second of all calls that the glob takes.
`MODE@result` is a fault for which `where: result` was asked: `tool/search#1=error@result:503`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from flakestorm.config.model import ContextAttack, LlmFault, Scenario, ToolFault
from flakestorm.config.vocabulary import CONTEXT_ATTACKS
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Family
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.record import Record
from flakestorm.core.regex import later
from flakestorm.core.registry import Registry, nearest
from flakestorm.core.site import Site
from flakestorm.errors import Misuse
from flakestorm.faults.base import (
    Change,
    Entry,
    Heard,
    Scene,
    context_attacks,
    conversation_attacks,
    llm_faults,
    result_attacks,
    result_faults,
    tool_faults,
)
from flakestorm.faults.drawing import again
from flakestorm.faults.line import Spec, read_settings, settings
from flakestorm.faults.modes import CONTEXT, CONVERSATION, LLM, RESULT, TOOL, arguments
from flakestorm.faults.places import Place, place_of

if TYPE_CHECKING:
    from flakestorm.wire.results import Told

__all__ = ["TRIGGERS", "Planned", "parse_fault", "parse_injection", "scenario_with"]

_ARGUMENTS: dict[str, dict[str, str]] = {
    "tool": {**arguments(RESULT), **arguments(TOOL)},
    "llm": arguments(LLM),
    "context": {**arguments(CONTEXT), **arguments(CONVERSATION)},
}
TRIGGERS = ("match_url", "probability", "trigger_probability", "after_calls", "calls", "times")
"""Settings that say when a fault acts, and not what it does."""
_FAULT = later(r"(?P<mode>[^:,@]+)(?:@(?P<place>[^:,]*))?(?P<settings>[:,].*)?", re.DOTALL)


class Planned(Record, frozen=True):
    """A fault as it stands in a schedule.

    Args:
        index: its place in the scenario: tool faults first, then model faults, then context attacks, each in the
            order of the config.
        family: which list it came from.
        spec: its settings.
    """

    index: int
    family: Family
    spec: Spec

    @classmethod
    def of(cls, spec: ToolFault | LlmFault | ContextAttack, index: int = 0) -> Planned:
        """A fault of a config, as the one with this index."""
        family: Family = "tool" if isinstance(spec, ToolFault) else "llm" if isinstance(spec, LlmFault) else "context"
        return cls(index, family, spec)

    @property
    def mode(self) -> str:
        """The fault's mode, e.g. `error`."""
        return self.spec.type if isinstance(self.spec, ContextAttack) else self.spec.mode

    @property
    def site(self) -> Site | None:
        """The one call it is pinned to, or None.

        Raises:
            Misuse: `site` is not written as a site.
        """
        if self.spec.site is None:
            return None
        try:
            return Site.parse(self.spec.site)
        except ValueError as error:
            raise Misuse(f"the fault {self.fault!r} is pinned to what is no site: {error}") from error

    @property
    def on_results(self) -> bool:
        """Whether it was asked to act on results only."""
        return not isinstance(self.spec, LlmFault) and self.spec.where == "result"

    @property
    def on_conversations(self) -> bool:
        """Whether it acts on what a model call tells the model."""
        return self._place is not None and self._place.at != "input"

    @property
    def on_input(self) -> bool:
        """Whether it acts on what the agent is asked."""
        return self._place is not None and self._place.at == "input"

    @property
    def step(self) -> int | None:
        """The one model call that it is for, by `inject_at: step_N`."""
        return None if self._place is None else self._place.step

    @property
    def _place(self) -> Place | None:
        """Where an attack on the conversation goes; None for everything else."""
        if not isinstance(self.spec, ContextAttack) or self.mode in context_attacks:
            return None
        known = self.mode in conversation_attacks or self.mode in conversation_attacks.names()
        return place_of(self.spec) if known else None

    def names(self, tool: str) -> bool:
        """Whether its own words are for a tool of this name, wherever that is met; `*` is for none in particular."""
        if not isinstance(self.spec, ToolFault) or self.spec.match_url is not None:
            return False
        pinned = self.site
        if pinned:
            return pinned.name == tool
        return self.spec.tool != "*" and (tool == self.spec.tool or fnmatchcase(tool, self.spec.tool))

    @property
    def particular(self) -> bool:
        """Whether it names what it is for, rather than taking any tool or any model that comes along."""
        name = self.spec.model if isinstance(self.spec, LlmFault) else self.spec.tool
        return name != "*" or self.spec.match_url is not None or self.spec.site is not None

    @property
    def target(self) -> str:
        """What it is for: its site, or the kind and the name or glob, e.g. `tool/search`, `llm/*`."""
        if self.spec.site is not None:
            return self.spec.site.replace("*", "%2A")  # a name that happens to hold it is no glob
        if self.on_input or self.on_conversations:
            return "agent/input" if self.on_input else "llm/*"
        name, kind = (self.spec.model, "llm") if isinstance(self.spec, LlmFault) else (self.spec.tool, "tool")
        return str(Site("llm" if kind == "llm" else "tool", name, 1)).removesuffix("#1")

    @property
    def first(self) -> int | None:
        """The first of its calls at which its triggers can agree, from 1; None where they never can."""
        after = self.spec.after_calls or 0
        chosen = [after + 1] if self.spec.calls is None else self.spec.calls
        if self.step is not None:
            chosen = [self.step] if self.spec.calls is None or self.step in self.spec.calls else []
        return min((call for call in chosen if call > after), default=None)

    @property
    def expected(self) -> Site:
        """Where it can act first: the site it is pinned to, else `kind/NAME#first`, where NAME may be a glob."""
        return self.site or Site.parse(f"{self.target}#{self.first or 1}")

    @property
    def fault(self) -> str:
        """`MODE` and every setting that is given: what stands behind `=` in `--inject`."""
        return self._spelled(excerpt=False)

    @property
    def line(self) -> str:
        """The whole fault in one line; `parse_fault` reads it back."""
        return f"{self.target}={self.fault}"

    def describe(self) -> str:
        """The line for reading: long values are cut, unless it is pinned to a site and so may be injected again."""
        return f"{self.target}={self._spelled(excerpt=self.spec.site is None)}"

    def _spelled(self, *, excerpt: bool) -> str:
        mode = f"{self.mode}@result" if self.on_results else self.mode
        return mode + settings(self.spec, _argument(self.family, self.mode), excerpt=excerpt)

    def at(self, site: Site, draws: str | None = None) -> Planned:
        """The same fault pinned to one site, without triggers: what it did there, as it can be injected again.

        Args:
            site: the call.
            draws: whose random choices it made there (`faults/drawing.py`), where it made any.
        """
        left_out = {*TRIGGERS, "tool", "model", *(["inject_at"] if self.step else [])}
        kept = {name: value for name, value in self.spec.given().items() if name not in left_out}
        if draws is not None:
            kept["draws"] = draws
        return Planned(self.index, self.family, type(self.spec)(**{**kept, "site": str(site)}))

    def check(self) -> None:
        """Make sure it can be played.

        Raises:
            Misuse: its mode is not in this version, or its settings ask for what is not.
        """
        self._check_mode()
        if self.on_results and self.spec.match_url is not None:
            raise Misuse(
                f"the fault {self.describe()!r} is for results, and a result has no URL; "
                "leave 'match_url' out and name the tool in 'tool'"
            )
        if self._place is not None and self._names_tool:
            raise Misuse(f"the fault {self.describe()!r} is for what the model is told; leave 'tool' out")
        site = self.site
        if self.spec.draws is not None:
            again(self.spec.draws, site or Site("tool", "", 1))
        if site is None:
            return
        if self.on_results and site.kind != "tool":
            raise Misuse(f"the fault {self.describe()!r} is for results; their sites are written tool/NAME#N")
        kinds = ("agent",) if self.on_input else ("llm",) if self._of_models else ("tool", "mcp", "http")
        if site.kind not in kinds:
            raise Misuse(
                f"the {_registry(self.family).what} {self.mode!r} cannot act at {site}: tool faults act on tool, mcp "
                "and http calls, model faults on llm calls, attacks on the conversation on llm calls as well, and "
                "those on the input at agent/input#1"
            )

    def load(self) -> None:
        """Import what plays it, so that no call has to wait for that. `check` first."""
        of_results = result_attacks if self.family == "context" else result_faults
        for registry in (*self._registries, *([] if self.family == "llm" else [of_results])):
            if self.mode in registry:
                registry.get(self.mode)

    @property
    def _of_models(self) -> bool:
        return self.family == "llm" or self.on_conversations

    @property
    def _names_tool(self) -> bool:
        return isinstance(self.spec, ContextAttack) and self.spec.tool != "*"

    def _check_mode(self) -> None:
        registries = self._registries
        if any(self.mode in registry for registry in registries):  # spares the search for plug-ins
            return
        known = sorted({name for registry in registries for name in registry.names()})
        brings = next((registry for registry in registries if self.mode in registry.names()), None)
        if brings is not None:
            brings.get(self.mode)  # a plug-in that cannot be loaded says so now, not within the agent's call
            return
        close = nearest(self.mode, known)
        elsewhere = self.family == "tool" and self.mode in (tool_faults if self.on_results else result_faults)
        hint = f"did you mean {close!r}? " if close else ""
        if elsewhere:
            hint = "it is for a tool's call only; " if self.on_results else "it is with 'where: result'; "
        raise Misuse(
            f"the {registries[0].what} {self.mode!r} is not available in this version; {hint}"
            f"available: {', '.join(known) or 'none'}"
        )

    @property
    def _registries(self) -> tuple[Registry[Any], ...]:
        """Where its mode may be found."""
        if self.on_results:
            return (result_attacks if self.family == "context" else result_faults,)
        return (context_attacks, conversation_attacks) if self.family == "context" else (_registry(self.family),)

    def build(self, scene: Scene) -> Interceptor:
        """The fault itself, ready for one call. `check` first."""
        if isinstance(self.spec, ToolFault):
            return tool_faults.get(self.spec.mode)(self.spec, scene)
        if isinstance(self.spec, LlmFault):
            return llm_faults.get(self.spec.mode)(self.spec, scene)
        return context_attacks.get(self.spec.type)(self.spec, scene)

    def change(self, told: Told, scene: Scene) -> Change | None:
        """What the fault makes of a tool's result; None where that is nothing. `check` first."""
        if isinstance(self.spec, ContextAttack):
            return result_attacks.get(self.spec.type)(self.spec, scene, told)
        if isinstance(self.spec, ToolFault):
            return result_faults.get(self.spec.mode)(self.spec, scene, told)
        return None

    def entry(self, heard: Heard, choices: Choices) -> Entry | None:
        """What the fault puts into a conversation; None where that is nothing. `check` first."""
        if not isinstance(self.spec, ContextAttack):
            return None
        return conversation_attacks.get(self.spec.type)(self.spec, choices, heard)


def parse_injection(text: str, *, index: int = 0) -> Planned:
    """Read `SITE=FAULT`, e.g. `tool/search#1=error:503`; the site's kind says whose fault it is.

    Args:
        text: as `--inject` takes it.
        index: its place among the faults of the run.

    Raises:
        Misuse: it is not of this form, or no such fault is available; the message says which part.
    """
    where, separator, fault = text.partition("=")
    if not separator or not fault or fault[0] in ":,@":
        raise Misuse(f"{text!r} is not SITE=FAULT; write for example tool/search#1=error:503 or llm/gpt-4o#2=timeout")
    try:
        Site.parse(where)
    except ValueError as error:
        raise Misuse(f"in {text!r}: {error}") from error
    return parse_fault(text, index=index)


def scenario_with(name: str, faults: Sequence[Spec]) -> Scenario:
    """The scenario of this name that plans these faults, those of one family in the order given."""
    return Scenario(
        name=name,
        tool_faults=[spec for spec in faults if isinstance(spec, ToolFault)],
        llm_faults=[spec for spec in faults if isinstance(spec, LlmFault)],
        context_attacks=[spec for spec in faults if isinstance(spec, ContextAttack)],
    )


def parse_fault(text: str, *, index: int = 0) -> Planned:
    """Read a fault's line, pinned to a site or not, e.g. `tool/search=error:503,after_calls=2`.

    Args:
        text: what `Planned.line` gives.
        index: its place in the schedule.

    Raises:
        Misuse: it is not of this form, or no such fault is available; the message says which part.
    """
    where, _, fault = text.partition("=")
    found = _FAULT.fullmatch(fault)
    kind, slash, _ = where.strip().partition("/")
    if found is None or not slash:
        raise Misuse(f"{text!r} is not TARGET=FAULT; write for example tool/search=error:503 or llm/*=timeout")
    mode, place = found["mode"], found["place"]
    family: Family = "context" if mode in CONTEXT_ATTACKS.words else "llm" if kind == "llm" else "tool"
    given: dict[str, Any] = {"type" if family == "context" else "mode": mode}
    given.update(_target(text, family, where.strip()))
    if place is not None:
        if place != "result" or family == "llm":
            raise Misuse(f"in {text!r}: only a tool fault can be for a result; write tool/search#1=error@result")
        given["where"] = "result"
    planned = Planned(index, family, _spec(text, family, given))
    planned.check()
    try:
        said = read_settings(found["settings"] or "", type(planned.spec), _argument(family, mode))
    except Misuse as error:
        raise Misuse(f"in {text!r}: {mode!r}: {error}") from error
    planned = Planned(index, family, _spec(text, family, {**said, **given}))
    planned.check()
    return planned


def _target(text: str, family: Family, where: str) -> dict[str, Any]:
    """The settings that a target stands for."""
    kind, _, name = where.partition("/")
    if "#" in name:
        name, _, occurrence = name.rpartition("#")
        if "*" not in name:
            return {"site": where.replace("%2A", "*")}
        if kind in ("mcp", "http"):
            raise Misuse(f"in {text!r}: a site names one call; tool/*#{occurrence} takes MCP and HTTP calls as well")
        return {**_target(text, family, f"{kind}/{name}"), "calls": [Site.parse(where).occurrence]}
    if where == "agent/input" and family == "context":
        return {"inject_at": "input"}
    if kind == "llm" and family == "context" and name != "*":
        raise Misuse(f"in {text!r}: attacks on the conversation are for any model; write llm/*")
    if kind not in ("tool", "llm"):
        raise Misuse(f"in {text!r}: {kind!r} is neither 'tool' nor 'llm'; other calls are told by their site")
    return {} if name == "*" else {"model" if family == "llm" else "tool": unquote(name)}


def _spec(text: str, family: Family, given: dict[str, Any]) -> Spec:
    makers: dict[str, type[Spec]] = {"llm": LlmFault, "context": ContextAttack}
    maker = makers.get(family, ToolFault)
    try:
        return maker.of(given)
    except ValueError as error:
        from flakestorm.config.problems import in_words

        raise Misuse(f"in {text!r}: {in_words(given, maker)}") from error


def _registry(family: Family) -> Registry[Any]:
    registries: dict[str, Registry[Any]] = {"tool": tool_faults, "llm": llm_faults, "context": context_attacks}
    return registries[family]


def _argument(family: Family, mode: str) -> str | None:
    return _ARGUMENTS.get(family, {}).get(mode)
