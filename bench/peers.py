"""Peers live in virtual environments of their own, made on first use below `.bench/`, so their pins disturb nobody."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["ROOT", "as_installed", "interpreter", "ours", "peer", "ratio", "take_turns", "version"]

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench"


def peer(*requirements: str, python: Path | None = None) -> Path:
    """The `bin` folder of an environment that has these requirements (pin them).

    Args:
        python: the interpreter to make it with; this one when None.
    """
    home = HOME / "+".join(requirements).replace("=", "").replace("[", "-").replace("]", "")
    if not (home / ".ready").exists():
        subprocess.run([python or sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-qq", *requirements], check=True)
        (home / ".ready").touch()
    return home / "bin"


def ours() -> Path:
    """The `bin` folder this runs in."""
    return Path(sys.executable).parent


def interpreter(at_least: tuple[int, int]) -> Path | None:
    """A Python at least this new: this one, or one on PATH or of pyenv's; None if there is none."""
    if sys.version_info[:2] >= at_least:
        return Path(sys.executable)
    minors = range(at_least[1], at_least[1] + 4)
    found = [which for minor in minors if (which := shutil.which(f"python3.{minor}"))]
    for minor in minors:
        found += map(str, (Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python"))
    for path in found:  # a shim may stand for a version that is not there
        if subprocess.run([path, "-V"], capture_output=True, check=False).returncode == 0:
            return Path(path)
    return None


def as_installed(binary: Path) -> dict[str, str]:
    """The environment of a command that finds its bytecode where an earlier run left it, as an installed one does.

    Installers compile what they install; a checkout, or where bytecode is forbidden, would compile it each time.
    """
    left_out = {"PYTHONDONTWRITEBYTECODE", *([] if binary.parent == ours() else ["PYTHONPATH"])}  # peers have their own
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "PYTHONPYCACHEPREFIX": str(HOME / "bytecode")}


def version(binaries: Path, package: str) -> str:
    """What is installed there."""
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    done = subprocess.run([binaries / "python", "-c", code, package], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def take_turns(arms: dict[str, Callable[[], float]], *, rounds: int, warm_up: bool = False) -> dict[str, list[float]]:
    """Measure each arm once per round, so that a noisy minute hits all of them.

    Args:
        warm_up: run each once before, unmeasured.
    """
    values: dict[str, list[float]] = {name: [] for name in arms}
    if warm_up:
        for measure in arms.values():
            measure()
    for _ in range(rounds):
        for name, measure in arms.items():
            values[name].append(measure())
    return values


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median over rounds of one arm's value over the other's."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))
