"""Every error flakestorm raises on purpose, as one tree.

The first question a reader has is *whose fault is it*, so that is how the tree splits::

    FlakestormError
    ├── Misuse                  you misused me: mend the call, the config or the command line
    │   ├── ConfigError         flakestorm.yaml is wrong; carries file, line and key
    │   ├── StageError          an interceptor broke the pipeline's rules; names file and line
    │   └── MissingExtra        a feature needs an optional dependency; names the extra
    ├── TapeError               the tape disagrees
    │   ├── TapeMismatch        a replay is not what was recorded; names the nearest entry
    │   └── TapeDamaged         a tape cannot be read: not a tape, cut short, edited, too new
    └── WorldFailed             the world failed
        ├── AgentUnreachable    the agent under test could not be started or reached
        ├── ModelFailed         the config's own model (a judge's) gave no answer
        └── CallFailed          a call across the boundary broke: timed out, reset or refused

Exit codes follow the same split: `Misuse` and `TapeError` end a command with 2, `AgentUnreachable` with 3.
`CallFailed` never ends a command: it is what the agent under test sees, translated by each seam into the
exception its own HTTP client would have raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

__all__ = [
    "AgentUnreachable",
    "CallFailed",
    "ConfigError",
    "FlakestormError",
    "MissingExtra",
    "Misuse",
    "ModelFailed",
    "StageError",
    "TapeDamaged",
    "TapeError",
    "TapeMismatch",
    "WorldFailed",
]


class FlakestormError(Exception):
    """The root: `except FlakestormError` catches everything flakestorm raises on purpose."""


class Misuse(FlakestormError):
    """The caller asked for something that cannot be done as asked."""

    about: object = None
    """The very fault that cannot be played, where it is that; by it, its place in a config is found."""


class ConfigError(Misuse):
    """A configuration file is wrong.

    Args:
        message: what is wrong and what to do about it.
        file: the file it was read from, if any.
        line: 1-based line in that file, if known.
        key: dotted path of the offending key, e.g. `agent.timeout`, if known.

    `str()` gives `FILE:LINE: KEY: MESSAGE`, leaving out what is not known.
    """

    def __init__(
        self, message: str, *, file: Path | str | None = None, line: int | None = None, key: str | None = None
    ) -> None:
        self.message, self.file, self.line, self.key = message, file, line, key
        where = "" if file is None else f"{file}:{line}: " if line is not None else f"{file}: "
        super().__init__(f"{where}{f'{key}: ' if key else ''}{message}")


class StageError(Misuse):
    """An interceptor yielded or returned something the pipeline cannot use."""


class MissingExtra(Misuse):
    """A feature needs an optional dependency that is not installed.

    Args:
        feature: what was asked for, as the user knows it.
        extra: the name of the extra that brings it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} needs the extra '{extra}': pip install 'flakestorm[{extra}]'")


class TapeError(FlakestormError):
    """A tape does not say what was expected of it."""


class TapeDamaged(TapeError):
    """A tape cannot be read: it is not a tape, was cut short or edited, or is of a newer format."""


class TapeMismatch(TapeError):
    """A replay is not what was recorded.

    Args:
        problems: what differs, one line each, the first first.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the replay is not what was recorded:\n" + "\n".join(f"  {line}" for line in self.problems))


class WorldFailed(FlakestormError):
    """Something outside flakestorm did not work."""


class AgentUnreachable(WorldFailed):
    """The agent under test could not be started or reached, so it cannot be judged."""


class ModelFailed(WorldFailed):
    """The model of the config, which judges, gave no answer; what it was to judge is inconclusive."""


class CallFailed(WorldFailed):
    """A call across the boundary broke before its reply was complete.

    Args:
        how: `timeout` (no bytes came in time), `reset` (the connection broke), `refused` (nobody listens).
        detail: what happened, in words.
        injected: True when a fault did this, False when the world did.
    """

    def __init__(
        self, how: Literal["timeout", "reset", "refused"], detail: str = "", *, injected: bool = False
    ) -> None:
        self.how, self.detail, self.injected = how, detail, injected
        super().__init__(f"{how}: {detail}" if detail else how)
