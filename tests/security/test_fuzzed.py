"""The inputs that fuzzing found, and a spread of others, through every target (`fuzz/`), without the fuzzer.

A file in `tests/regressions/TARGET` is an input that once broke a promise. Beside them, every target gets bytes that
follow from its name, so that a target that no longer runs is noticed here.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzz.targets import TARGETS, check_of

FOUND = Path(__file__).parent.parent / "regressions"


@pytest.mark.parametrize("path", sorted(FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_stays_mended(path: Path) -> None:
    check_of(path.parent.name)(path.read_bytes())


def test_every_folder_is_of_a_target() -> None:
    assert {path.name for path in FOUND.iterdir()} <= set(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_runs(target: str) -> None:
    check, rng = check_of(target), random.Random(target)
    for size in range(60):
        check(rng.randbytes(size * 3))
