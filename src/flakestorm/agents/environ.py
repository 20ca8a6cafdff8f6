"""Where agents find themselves: the variables they inherit, or that are set in this process for them; their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from flakestorm.config.model import Config
from flakestorm.core.registry import nearest
from flakestorm.errors import ConfigError

__all__ = ["PRIVATE", "folder_of", "in_environ", "inherited"]

PRIVATE = ("FLAKESTORM_SIGNING_KEY", "FLAKESTORM_TRUST_KEY")
"""Variables that are for flakestorm alone: what is tested must not be able to sign what is said of it or seal tapes."""


_LOOKED_AT = 1000
"""How many names are compared with one that is not there."""


def inherited() -> dict[str, str]:
    """What a launched program finds in its environment before anything is added: the caller's, but for `PRIVATE`."""
    return {name: value for name, value in os.environ.items() if name not in PRIVATE}


def folder_of(config: Config) -> Path:
    """Where `agent.start` runs: `agent.cwd`, by default the config's own folder.

    Raises:
        ConfigError: there is no such folder.
    """
    folder = Path(config.folder, config.agent.cwd or "").absolute()
    if folder.is_dir() or config.agent.cwd is None:
        return folder
    if folder.exists():
        raise ConfigError(f"{folder} is a file; name the folder in which the agent is started", key="agent.cwd")
    close = None
    with suppress(OSError):  # the folder above it may be missing too, or not ours to read
        beside = islice(folder.parent.iterdir(), _LOOKED_AT)
        close = nearest(folder.name, [each.name for each in beside if each.is_dir()])
    hint = f"; did you mean {str(Path(config.agent.cwd).with_name(close))!r}?" if close else ""
    raise ConfigError(f"the folder {folder} does not exist{hint}", key="agent.cwd")


@contextmanager
def in_environ(variables: Mapping[str, str]) -> Iterator[None]:
    """While entered, these variables are set; then they are what they were before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
