"""Reading the marker: what breaks, how often the test is run, and what of it must pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from flakestorm.config.model import Chaos, Config, ContextAttack, LlmFault, Scenario, ToolFault
from flakestorm.core.registry import nearest
from flakestorm.errors import Misuse
from flakestorm.faults.line import Spec
from flakestorm.faults.planned import parse_fault, parse_injection, scenario_with

__all__ = ["CONFIG", "Mark", "config_file"]

CONFIG = "flakestorm.yaml"
_LISTS: dict[str, type] = {
    "faults": str,
    "inject": str,
    "tool_faults": Mapping,
    "llm_faults": Mapping,
    "context_attacks": Mapping,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The settings of `@pytest.mark.flakestorm`.

    Args:
        profile: a built-in profile's name, or a file's path, from the test's folder, rootdir or the working directory.
        scenario: the name of one in the config's chaos matrix.
        faults: each in one line, as reports show them: `tool/search=error:503,after_calls=1`.
        inject: each pinned to a site: `tool/search#1=error:503`.
        tool_faults, llm_faults, context_attacks: as in the config.
        trials: how often the test is run.
        min_pass_rate: of the trials that can be judged, the part that must pass; 0..1.
        config: the config's path, from the test's folder or from rootdir.
        seed: every random choice follows from it.
    """

    profile: str | Path | None = None
    scenario: str | None = None
    faults: Collection[str] = ()
    inject: Collection[str] = ()
    tool_faults: Collection[Mapping[str, Any]] = ()
    llm_faults: Collection[Mapping[str, Any]] = ()
    context_attacks: Collection[Mapping[str, Any]] = ()
    trials: int = 1
    min_pass_rate: float = 1.0
    config: str | Path | None = None
    seed: int | None = None

    @classmethod
    def of(cls, item: pytest.Item) -> Mark:
        """The marker of a test; the defaults where it has none. Of several (its own, its class's, its module's), each
        setting is taken from the closest that has it: what a wider one breaks is not lost where a test says `trials=5`.

        Raises:
            Misuse: one holds what it should not.
        """
        known = [each.name for each in fields(cls)]
        given: dict[str, Any] = {}
        for found in item.iter_markers("flakestorm"):  # the closest first
            if found.args:
                raise Misuse(f"@pytest.mark.flakestorm takes settings by name only: {', '.join(known)}")
            for name in found.kwargs:
                if name not in known:
                    close = nearest(name, known)
                    hint = f"did you mean {close!r}? " if close else ""
                    raise Misuse(f"@pytest.mark.flakestorm has no setting {name!r}; {hint}known: {', '.join(known)}")
            given = {**found.kwargs, **given}
        mark = cls(**given)
        mark._check()
        return mark

    def _check(self) -> None:
        if not isinstance(self.trials, int) or isinstance(self.trials, bool) or self.trials < 1:
            raise Misuse(f"trials={self.trials!r} in @pytest.mark.flakestorm is no number of runs; give 1 or more")
        rate = self.min_pass_rate
        if not isinstance(rate, (int, float)) or isinstance(rate, bool) or not 0 <= rate <= 1:
            raise Misuse(f"min_pass_rate={rate!r} in @pytest.mark.flakestorm is no rate; give 0 to 1")
        for name, kind in _LISTS.items():
            given = getattr(self, name)
            if isinstance(given, (str, Mapping)):
                raise Misuse(f"{name} in @pytest.mark.flakestorm is a list; put brackets around it")
            if not isinstance(given, Collection):
                raise Misuse(f"{name}={given!r} in @pytest.mark.flakestorm is no list")
            if odd := [each for each in given if not isinstance(each, kind)]:
                what = "a fault in one line of text" if kind is str else "a mapping, as in the config"
                raise Misuse(f"{odd[0]!r} among {name} in @pytest.mark.flakestorm is not {what}")
        for name in ("profile", "scenario", "config"):
            given = getattr(self, name)
            if not (given is None or isinstance(given, str) or (isinstance(given, Path) and name != "scenario")):
                raise Misuse(f"{name}={given!r} in @pytest.mark.flakestorm is no name or path; give text")
        if not (self.seed is None or (isinstance(self.seed, int) and not isinstance(self.seed, bool))):
            raise Misuse(f"seed={self.seed!r} in @pytest.mark.flakestorm is no whole number")

    def breaks(self, config: Config, name: str, folders: Sequence[Path] = ()) -> Scenario:
        """Everything that is to break, as one scenario.

        Args:
            config: has the scenarios that can be named.
            name: what it is called.
            folders: where a profile's file is looked for before the working directory.

        Raises:
            Misuse: something of it is unknown.
        """
        blocks: list[Chaos] = []
        if self.profile is not None:
            from flakestorm.faults.profiles import load, names

            found = [folder / self.profile for folder in folders if self.profile not in names()]
            blocks.append(load(next((path for path in found if path.is_file()), self.profile)))
        if self.scenario is not None:
            blocks.append(_named(config, self.scenario))
        specs: list[Spec] = []
        for block in blocks:
            specs += (*block.tool_faults, *block.llm_faults, *block.context_attacks)
        specs += [parse_fault(text).spec for text in self.faults]
        specs += [parse_injection(text).spec for text in self.inject]
        for given, kind in ((self.tool_faults, ToolFault), (self.llm_faults, LlmFault)):
            specs += _read(given, kind)
        specs += _read(self.context_attacks, ContextAttack)
        return scenario_with(name, specs)


def _read(given: Collection[Mapping[str, Any]], kind: Any) -> list[Any]:
    found = []
    for each in given:
        try:
            found.append(kind.of(each))
        except ValueError as error:
            raise Misuse(f"the fault {dict(each)!r} in @pytest.mark.flakestorm: {error}") from error
    return found


def _named(config: Config, name: str) -> Scenario:
    scenarios: list[Scenario] = [*(config.contract.chaos_matrix if config.contract else ()), *config.chaos_matrix]
    for scenario in scenarios:
        if scenario.name == name:
            return scenario
    names = [scenario.name for scenario in scenarios]
    raise Misuse(f"the config has no scenario {name!r}; it has: {', '.join(names) or 'none'}")


def config_file(item: pytest.Item, named: str | Path | None) -> Path:
    """The config that a test's agent is in.

    Args:
        item: the test.
        named: what its marker says.

    Raises:
        Misuse: there is none; the message says where it was looked for.
    """
    root = item.config.rootpath
    tried = [root / CONFIG] if named is None else [item.path.parent / named, root / named]
    for path in tried:
        if path.is_file():
            return path
    hint = (
        "`flakestorm init` writes one, and @pytest.mark.flakestorm(config=...) names another"
        if named is None
        else "config= is taken from the test's folder, then from rootdir"
    )
    raise Misuse(f"there is no config at {' or '.join(map(str, dict.fromkeys(tried)))}; {hint}")
