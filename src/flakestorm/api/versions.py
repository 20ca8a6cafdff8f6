"""The two versions of a comparison: what BASE and HEAD may name, and where that is found.

A name is a report (a JSON file, or what the store knows it by), a config file (or the folder of one), or a git ref. A
ref is checked out into a folder of its own, which is gone afterwards; the config in it is the one at the same path.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flakestorm.config import load as load_config
from flakestorm.config.model import Config
from flakestorm.engine.events import Report
from flakestorm.errors import Misuse

__all__ = ["Version", "version"]

_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}|latest")
_GIT_LIMIT_S = 300


@dataclass(frozen=True, slots=True)
class Version:
    """One side of a comparison.

    Args:
        name: as the user gave it.
        kind: `config` and `git` are run, `report` was.
        config: of a version that is run; path: its file.
        report: of one that was.
        commit: of a git ref.
    """

    name: str
    kind: str
    config: Config | None = None
    path: Path = Path()
    report: Report | None = None
    commit: str = ""


@contextmanager
def version(name: str, config_path: Path, saved: Callable[[str], Report]) -> Iterator[Version]:
    """The version that a name means, while entered.

    Args:
        name: see the module.
        config_path: the project's config, whose path within the repository a ref's config has.
        saved: gives the report that the store knows by a name, or raises `Misuse`.

    Raises:
        Misuse: the name means nothing; the message says what was tried.
    """
    file = Path(name)
    if file.is_dir() and (file / config_path.name).is_file():
        file = file / config_path.name
    if file.is_file():
        yield _of_file(name, file)
        return
    if _ID.fullmatch(name):
        yield Version(name, "report", report=saved(name))
        return
    commit = _commit(name, config_path)
    if commit:
        with _checked_out(name, commit, config_path) as found:
            yield found
        return
    try:
        report = saved(name)
    except Misuse as error:
        raise Misuse(
            f"{name!r} is no file, no commit of the repository of {config_path}, and no saved report ({error}); "
            "give a config, a JSON report, a git ref or a report's id"
        ) from error
    yield Version(name, "report", report=report)


def _of_file(name: str, file: Path) -> Version:
    with file.open("rb") as opened:
        start = opened.read(512).lstrip()
    if file.suffix.lower() == ".json" or start.startswith(b"{"):
        from flakestorm.reports.document import read_json  # only a comparison with a report reads one

        return Version(name, "report", path=file, report=read_json(file))
    return Version(name, "config", config=load_config(file), path=file)


def _commit(name: str, config_path: Path) -> str:
    """The commit of a ref, in the repository the config lies in; empty where there is none."""
    done = _git(config_path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return done.stdout.strip() if done is not None and done.returncode == 0 else ""


def _git(config_path: Path, *words: str) -> subprocess.CompletedProcess[str] | None:
    folder = config_path.resolve().parent
    git = shutil.which("git")
    if git is None or not folder.is_dir():
        return None
    return subprocess.run(  # noqa: S603 - git, with a commit that git itself has named
        [git, "-C", str(folder), *words],
        capture_output=True,
        text=True,
        timeout=_GIT_LIMIT_S,
        check=False,
        env=_environ(),
    )


def _environ() -> dict[str, str]:
    """Without what a git hook says about the repository it runs in: the config's folder says it."""
    return {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}


@contextmanager
def _checked_out(name: str, commit: str, config_path: Path) -> Iterator[Version]:
    top = _git(config_path, "rev-parse", "--show-toplevel")
    if top is None or top.returncode:
        raise Misuse(f"{name!r} is a commit, but {config_path} lies in no working copy")
    below = config_path.resolve().relative_to(Path(top.stdout.strip()).resolve())
    with tempfile.TemporaryDirectory(prefix="flakestorm-compare-") as temporary:
        place = Path(temporary, commit[:12])
        done = _git(config_path, "worktree", "add", "--quiet", "--detach", str(place), commit)
        if done is None or done.returncode:
            raise Misuse(f"{name!r} cannot be checked out: {'' if done is None else done.stderr.strip()[:500]}")
        try:
            file = place / below
            if not file.is_file():
                raise Misuse(f"there is no {below} in {name!r} (commit {commit[:12]}); give -c a config that is in it")
            yield Version(name, "git", config=load_config(file), path=file, commit=commit)
        finally:
            _git(config_path, "worktree", "remove", "--force", str(place))
            _git(config_path, "worktree", "prune")
