"""The inputs that fuzzing found, and a spread of others, through every target (`fuzz/`), without the fuzzer.

A file in `tests/regressions/TARGET` is an input that once broke a promise. Beside them, every target gets bytes that
follow from its name, so that a target that no longer runs is noticed here.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.targets import TARGETS, check_of

ROOT = Path(__file__).parents[2]
FOUND = ROOT / "tests" / "regressions"


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


_WATCHED = """
import random, sys
from importlib import import_module
targets = sys.argv[1:]
for target in targets:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("flakestorm", "fuzz")]:
        del sys.modules[name]
    fuzz = import_module("fuzz.targets")
    check, rng = fuzz.check_of(target), random.Random(target)
    for name in fuzz.late(target):
        import_module(name)
    before = set(sys.modules)
    for size in range(60):
        check(rng.randbytes(size * 3))
    print(end="".join(f"{target}: {name} " for name in set(sys.modules) - before if name.startswith("flakestorm")))
"""


def test_the_fuzzer_sees_every_module_that_a_target_uses() -> None:
    """What is imported while a target runs is not instrumented, and the fuzzer would be blind there."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED, *TARGETS], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
