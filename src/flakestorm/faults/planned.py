"""One planned fault, and its one-line form.

Reports show `tool/search=error:503 (after 2)`; command lines take `--inject 'tool/search#1=error:503'`. The second is
the first pinned to one site and without triggers, and it reads back as it was written::

    TARGET=MODE          tool/search#1=timeout
    TARGET=MODE:ARG      tool/search#1=error:503      llm/gpt-4o#2=truncated_response:20

ARG is the mode's main setting (`ARGUMENTS` of `tool.py` and `llm.py`). `MODE@result` is a fault for which
`where: result` was asked: `tool/search#1=error@result:503`. In a text, `%` and control characters are
percent-encoded, so the form stays one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

from pydantic import ValidationError

from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.config.vocabulary import CONTEXT_ATTACKS
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Family
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.registry import Registry, nearest
from flakestorm.core.site import Site
from flakestorm.errors import Misuse
from flakestorm.faults.base import Change, Scene, context_attacks, llm_faults, result_faults, tool_faults
from flakestorm.faults.context import ARGUMENTS as CONTEXT_ARGUMENTS
from flakestorm.faults.drift import ARGUMENTS as DRIFT_ARGUMENTS
from flakestorm.faults.llm import ARGUMENTS as LLM_ARGUMENTS
from flakestorm.faults.tool import ARGUMENTS as TOOL_ARGUMENTS
from flakestorm.faults.tool_result import ARGUMENTS as RESULT_ARGUMENTS
from flakestorm.wire.results import Told

__all__ = ["Planned", "parse_injection"]

_ARGUMENTS: dict[str, dict[str, str]] = {
    "tool": {**RESULT_ARGUMENTS, **TOOL_ARGUMENTS},
    "llm": {**LLM_ARGUMENTS, **DRIFT_ARGUMENTS},
    "context": CONTEXT_ARGUMENTS,
}
_TRIGGERS = ("match_url", "probability", "trigger_probability", "after_calls", "calls", "times")
_TARGETS = ("tool", "model", "site", "mode", "type", "enabled")
_EXCERPT = 60
_CONTROL = re.compile(r"[%\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault as it stands in a schedule.

    Args:
        index: its place in the scenario: tool faults first, then model faults, then context attacks, each in the
            order of the config.
        family: which list it came from.
        spec: its settings.
    """

    index: int
    family: Family
    spec: ToolFault | LlmFault | ContextAttack

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
        return isinstance(self.spec, ToolFault) and self.spec.where == "result"

    def names(self, tool: str) -> bool:
        """Whether its own words are for a tool of this name, wherever that is met; `*` is for none in particular."""
        if not isinstance(self.spec, ToolFault) or self.spec.match_url is not None:
            return False
        pinned = self.site
        return pinned.name == tool if pinned else self.spec.tool != "*" and fnmatchcase(tool, self.spec.tool)

    @property
    def particular(self) -> bool:
        """Whether it names what it is for, rather than taking any tool or any model that comes along."""
        name = self.spec.model if isinstance(self.spec, LlmFault) else self.spec.tool
        return name != "*" or self.spec.match_url is not None or self.spec.site is not None

    @property
    def target(self) -> str:
        """What it is for: its site, or the kind and the name or glob, e.g. `tool/search`, `llm/*`."""
        if self.spec.site is not None:
            return self.spec.site
        name, kind = (self.spec.model, "llm") if isinstance(self.spec, LlmFault) else (self.spec.tool, "tool")
        return str(Site("llm" if kind == "llm" else "tool", name, 1)).removesuffix("#1")

    @property
    def fault(self) -> str:
        """`MODE`, or `MODE:ARG` where the main setting is given: what stands behind `=` in `--inject`."""
        setting = _argument(self.family, self.mode)
        value = None if setting is None else getattr(self.spec, setting)
        mode = f"{self.mode}@result" if self.on_results else self.mode
        return mode if value is None else f"{mode}:{_quoted(str(value))}"

    def describe(self) -> str:
        """One line, with triggers and other settings in brackets: `llm/*=rate_limit (after 5, p 0.3)`."""
        fault = self.fault if self.spec.site is not None else _excerpt(self.fault)
        notes = ", ".join(_notes(self.spec, _argument(self.family, self.mode)))
        return f"{self.target}={fault}" + (f" ({notes})" if notes else "")

    def at(self, site: Site) -> Planned:
        """The same fault pinned to one site, without triggers: what it did there, as it can be injected again."""
        kept = {name: getattr(self.spec, name) for name in self.spec.model_fields_set - {*_TRIGGERS, "tool", "model"}}
        return Planned(self.index, self.family, type(self.spec)(**{**kept, "site": str(site)}))

    def check(self) -> None:
        """Make sure it can be played.

        Raises:
            Misuse: its mode is not in this version, or its settings ask for what is not.
        """
        registry: Registry[Any] = result_faults if self.on_results else _registry(self.family)
        if self.mode not in registry and self.mode not in registry.names():
            known = sorted(registry.names())
            close = nearest(self.mode, known)
            elsewhere = self.family == "tool" and not self.on_results and self.mode in result_faults
            raise Misuse(
                f"the {registry.what} {self.mode!r} is not available in this version; "
                + ("it is with 'where: result'; " if elsewhere else f"did you mean {close!r}? " if close else "")
                + f"available: {', '.join(known) or 'none'}"
            )
        if self.on_results and self.spec.match_url is not None:
            raise Misuse(
                f"the fault {self.describe()!r} is for results, and a result has no URL; "
                "leave 'match_url' out and name the tool in 'tool'"
            )
        site = self.site
        if site is None:
            return
        if self.on_results and site.kind != "tool":
            raise Misuse(f"the fault {self.describe()!r} is for results; their sites are written tool/NAME#N")
        if (site.kind == "llm") != (self.family == "llm") or site.kind in ("agent", "draw"):
            raise Misuse(
                f"the {registry.what} {self.mode!r} cannot act at {site}: tool faults act on tool, mcp and http "
                "calls, model faults on llm calls"
            )

    def build(self, scene: Scene) -> Interceptor:
        """The fault itself, ready for one call. `check` first."""
        if isinstance(self.spec, ToolFault):
            return tool_faults.get(self.spec.mode)(self.spec, scene)
        if isinstance(self.spec, LlmFault):
            return llm_faults.get(self.spec.mode)(self.spec, scene)
        return context_attacks.get(self.spec.type)(self.spec, scene)

    def change(self, told: Told, choices: Choices) -> Change | None:
        """What the fault makes of a tool's result; None where that is nothing. `check` first."""
        if not isinstance(self.spec, ToolFault):
            return None
        return result_faults.get(self.spec.mode)(self.spec, choices, told)


def parse_injection(text: str, *, index: int = 0) -> Planned:
    """Read `SITE=FAULT`, e.g. `tool/search#1=error:503`; the site's kind says whose fault it is.

    Args:
        text: as `--inject` takes it.
        index: its place among the faults of the run.

    Raises:
        Misuse: it is not of this form, or no such fault is available; the message says which part.
    """
    where, separator, fault = text.partition("=")
    mode, colon, argument = fault.partition(":")
    if not separator or not mode:
        raise Misuse(f"{text!r} is not SITE=FAULT; write for example tool/search#1=error:503 or llm/gpt-4o#2=timeout")
    try:
        site = Site.parse(where)
    except ValueError as error:
        raise Misuse(f"in {text!r}: {error}") from error
    mode, place, of = mode.partition("@")
    family: Family = "llm" if site.kind == "llm" else "context" if mode in CONTEXT_ATTACKS.words else "tool"
    settings: dict[str, Any] = {"type" if family == "context" else "mode": mode, "site": str(site)}
    if place:
        if of != "result" or family != "tool":
            raise Misuse(f"in {text!r}: only a tool fault can be for a result; write tool/search#1=error@result")
        settings["where"] = "result"
    setting = _argument(family, mode)
    planned = Planned(index, family, _spec(text, family, settings))
    planned.check()
    if not colon:
        return planned
    if setting is None:
        raise Misuse(f"in {text!r}: the mode {mode!r} takes no argument; write {where}={mode}")
    return Planned(index, family, _spec(text, family, {**settings, setting: unquote(argument)}))


def _spec(text: str, family: Family, settings: dict[str, Any]) -> ToolFault | LlmFault | ContextAttack:
    makers: dict[str, type[ToolFault | LlmFault | ContextAttack]] = {"llm": LlmFault, "context": ContextAttack}
    try:
        return makers.get(family, ToolFault)(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise Misuse(f"in {text!r}: {key}: {first['msg']}, not {first['input']!r}") from error


def _registry(family: Family) -> Registry[Any]:
    registries: dict[str, Registry[Any]] = {"tool": tool_faults, "llm": llm_faults, "context": context_attacks}
    return registries[family]


def _argument(family: Family, mode: str) -> str | None:
    return _ARGUMENTS.get(family, {}).get(mode)


def _notes(spec: ToolFault | LlmFault | ContextAttack, argument: str | None) -> list[str]:
    """The settings that are given and not said by target and fault, triggers first."""
    given = {name: getattr(spec, name) for name in type(spec).model_fields if name in spec.model_fields_set}
    words: dict[str, Callable[[Any], str]] = {
        "match_url": lambda url: f"url {_quoted(url)}",
        "probability": lambda p: f"p {p:g}",
        "trigger_probability": lambda p: f"p {p:g}",
        "after_calls": lambda n: f"after {n}",
        "calls": lambda calls: "calls " + " ".join(str(n) for n in calls),
        "times": lambda n: f"at most {n}",
    }
    triggers = [words[name](given[name]) for name in _TRIGGERS if given.get(name) is not None]
    rest = [
        f"{name} {_excerpt(_quoted(str(value)))}"
        for name, value in given.items()
        if value is not None and name not in (*_TRIGGERS, *_TARGETS, argument) and (name, value) != ("where", "result")
    ]
    return triggers + rest


def _quoted(text: str) -> str:
    return _CONTROL.sub(lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode()), text)


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
