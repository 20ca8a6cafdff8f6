"""The agents of a test session: each config's is started by the first test that asks it, and kept until the end."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.api import Project, load
from flakestorm.api.keeping import Kept
from flakestorm.errors import FlakestormError
from flakestorm.pytest_plugin.notes import AGENTS

__all__ = ["Agents", "agents_of", "slug"]


class Agents:
    """The agents that are kept.

    Args:
        tapes: the folder for tapes that belong to nobody.
        here: the folder the user is in; paths are told as seen from there.
    """

    def __init__(self, tapes: Path, here: Path) -> None:
        self.tapes, self._here = tapes, here
        self._projects: dict[Path, Project] = {}
        self._kept: dict[Path, Kept | FlakestormError] = {}
        self._runs = 0

    def project(self, path: Path) -> Project:
        """The project of a config file.

        Raises:
            ConfigError: the file is wrong.
        """
        if path not in self._projects:
            near = os.path.relpath(path, self._here)  # for the reader only: tests go from folder to folder
            shown = path if near.startswith("..") else Path(near)
            self._projects[path] = replace(load(path), path=shown)
        return self._projects[path]

    def kept(self, path: Path) -> Kept:
        """The agent of a config file, started.

        Raises:
            WorldFailed: it cannot be.
            Misuse: the config asks for what there is not. Neither is tried again.
        """
        if path not in self._kept:
            try:
                self._kept[path] = Kept(self.project(path), self.tapes)
            except FlakestormError as error:
                self._kept[path] = error
        found = self._kept[path]
        if isinstance(found, FlakestormError):
            raise found
        return found

    def next_run(self, name: str) -> str:
        """An id that no other run of this session has."""
        self._runs += 1
        return f"{slug(name)}-{self._runs:04d}"

    def close(self) -> None:
        """Let go of all of them."""
        kept, self._kept = self._kept, {}
        for each in kept.values():
            if isinstance(each, Kept):
                each.close()


def agents_of(request: pytest.FixtureRequest) -> Agents:
    """The agents of this session."""
    stash = request.config.stash
    if AGENTS not in stash:
        factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        stash[AGENTS] = Agents(factory.mktemp("flakestorm"), request.config.invocation_params.dir)
    return stash[AGENTS]


def slug(name: str) -> str:
    """A test's name as part of a file name."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:100] or "test"
