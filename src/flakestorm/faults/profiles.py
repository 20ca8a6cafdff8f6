"""Profiles: ready-made chaos, by name, and a user's own in the same form, by path.

A profile is a YAML file with a `name`, a `description` and the lists of a `chaos` block, at the top level or, as
flakestorm 2.0 wrote them, under `chaos:`. Any profile can be loaded; whether all its modes are in this version is
answered when a schedule is made of it.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from flakestorm.config.load import read, reads
from flakestorm.config.model import Chaos, Scenario
from flakestorm.core.beside import beside
from flakestorm.core.registry import nearest
from flakestorm.errors import ConfigError, Misuse

__all__ = ["Profile", "load", "names", "profile"]

_SUFFIXES = (".yaml", ".yml")


class Profile(Chaos, frozen=True, kw_only=True):
    """A profile file. `scenario` is the scenario it stands for."""

    name: Annotated[str, Meta(description="the profile's name; default: the file's name")] = ""
    description: Annotated[str, Meta(description="what it does, in a sentence")] = ""
    chaos: Annotated[Chaos | None, Meta(description="the three lists, as flakestorm 2.0 nested them")] = None

    @classmethod
    def _spelled(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        said = data.get("description")
        return {**data, "description": " ".join(said.split())} if isinstance(said, str) else data

    @property
    def scenario(self) -> Scenario:
        """The lists of both places, those at the top level first."""
        nested = self.chaos or Chaos()
        return Scenario(
            name=self.name,
            tool_faults=[*self.tool_faults, *nested.tool_faults],
            llm_faults=[*self.llm_faults, *nested.llm_faults],
            context_attacks=[*self.context_attacks, *nested.context_attacks],
        )


@cache
def names() -> tuple[str, ...]:
    """The built-in profiles, in alphabetical order."""
    return tuple(
        sorted(
            file.name.removesuffix(".yaml")
            for file in beside("faults", "profiles").iterdir()
            if file.name.endswith(".yaml")
        )
    )


def profile(name_or_path: str | Path) -> Profile:
    """A built-in profile by its name, or a user's own by the path of its file.

    What ends in `.yaml` or `.yml`, or contains a path separator, is a path.

    Raises:
        Misuse: there is no built-in profile of this name; the message gives the nearest one and the list.
        ConfigError: the file cannot be read or is not a profile; names file, line and key.
    """
    asked = str(name_or_path)
    if asked in names():
        return reads(
            beside("faults", "profiles", f"{asked}.yaml").read_text(encoding="utf-8"), Profile, file=f"{asked}.yaml"
        )
    path = Path(name_or_path)
    if path.suffix.lower() not in _SUFFIXES and path.name == asked:
        close = nearest(asked, names())
        raise Misuse(
            f"there is no profile {asked!r}; "
            + (f"did you mean {close!r}? " if close else "")
            + f"known: {', '.join(names())}; your own YAML file works by its path"
        )
    if not path.is_file():
        raise ConfigError("there is no such profile file; 'flakestorm profiles' lists the built-in ones", file=path)
    found = read(path, Profile)
    found = found if found.name else replace(found, name=path.stem)
    if not found.scenario.chaos:
        raise ConfigError("the profile plans no fault; add tool_faults, llm_faults or context_attacks", file=path)
    return found


def load(name_or_path: str | Path) -> Scenario:
    """A profile as a scenario; raises as `profile` does."""
    return profile(name_or_path).scenario
