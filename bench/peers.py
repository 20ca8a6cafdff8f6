"""Peers live in virtual environments of their own, made on first use below `.bench/`, so their pins disturb nobody."""

from __future__ import annotations

import statistics
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench"


def peer(*requirements: str) -> Path:
    """The `bin` folder of an environment that has these requirements (pin them)."""
    home = HOME / "+".join(requirements).replace("=", "").replace("[", "-").replace("]", "")
    if not (home / ".ready").exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", *requirements], check=True)
        (home / ".ready").touch()
    return home / "bin"


def ours() -> Path:
    """The `bin` folder this runs in."""
    return Path(sys.executable).parent


def medians(arms: dict[str, Callable[[], float]], *, rounds: int) -> dict[str, float]:
    """The median of each arm, the arms taking turns so that a noisy minute hits all of them."""
    values: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name, measure in arms.items():
            values[name].append(measure())
    return {name: statistics.median(v) for name, v in values.items()}


def verdict(claim: str, holds: bool) -> bool:
    """Print whether a claim held in this run, and pass it on."""
    print(f"   {'holds' if holds else 'DOES NOT HOLD'}: {claim}", flush=True)
    return holds


def row(name: str, cells: Sequence[str]) -> None:
    """One line of a table."""
    print(f"   {name:<28}" + "".join(f"{cell:>22}" for cell in cells), flush=True)
