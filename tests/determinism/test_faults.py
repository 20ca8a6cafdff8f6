"""The same seed gives the same faults: under any concurrency, hash seed and Python version, a hundred times over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

import flakestorm
from determinism_support import DRAWING, drawn

KNOWN = "5e39b78e39d848e98313c9fe03ca6941eb90921a2e518466dea04aceeb41f1f6"
"""Which faults fire where with seed 42. A change here changes the faults of every user's seed, and belongs in the
CHANGELOG."""


@cache
def reference() -> str:
    return drawn(1)


def program(python: str, concurrency: int, hash_seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(flakestorm.__file__).parents[1])}
    done = subprocess.run(
        [python, str(DRAWING), str(concurrency)], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_something_to_compare() -> None:
    runs = json.loads(reference())["runs"]
    fired = [len(run["fired"]) for run in runs.values()]
    assert len(runs) == 18
    assert sum(fired) > 60
    assert len({json.dumps(run["fired"]) for run in runs.values()}) > 10
    assert any(run["masked"] for run in runs.values())
    assert drawn(1, seed=43) != reference()


def test_what_is_drawn_is_known() -> None:
    runs = json.loads(reference())["runs"]
    fired = {run: [[site, mode, fault] for site, mode, _, fault in told["fired"]] for run, told in runs.items()}
    assert sha256(json.dumps(fired).encode()).hexdigest() == KNOWN


@pytest.mark.parametrize("concurrency", [4, 16])
def test_concurrency_changes_nothing(concurrency: int) -> None:
    assert drawn(concurrency) == reference()


def test_a_hundred_repeats_are_the_same() -> None:
    few = drawn(1, trials=1)
    assert {drawn(1 + n % 16, trials=1) for n in range(100)} == {few}


@pytest.mark.parametrize(("hash_seed", "concurrency"), [("0", 1), ("1", 4), ("random", 16)])
def test_hash_seeds_change_nothing(hash_seed: str, concurrency: int) -> None:
    assert program(sys.executable, concurrency, hash_seed) == reference()


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_python_versions_change_nothing(version: str) -> None:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    prepared = Path(__file__).parents[2] / f".venv-{version}" / "bin" / "python"  # by `make pythons`
    python = sys.executable if version == running else shutil.which(prepared) or shutil.which(f"python{version}")
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    needed = "import click, httptools, msgspec, pydantic_core, yaml, orjson, re2, aiohttp"
    if subprocess.run([python, "-c", needed], capture_output=True, check=False).returncode:
        pytest.skip(f"flakestorm's dependencies are not installed for Python {version}")
    assert program(python, 4, "0") == reference()
