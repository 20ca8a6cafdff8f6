"""What every pytest session imports, whether or not it has an agent to test."""

import subprocess
import sys

from flakestorm.pytest_plugin import notes


def test_it_costs_nothing() -> None:
    script = (
        "import pytest, sys\nbefore = set(sys.modules)\nimport flakestorm.pytest_plugin.notes\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ours = ["flakestorm", "flakestorm.pytest_plugin", "flakestorm.pytest_plugin.notes", "flakestorm.version"]
    assert done.stdout.strip() == str(ours)


def test_every_key_is_its_own() -> None:
    keys = [getattr(notes, name) for name in notes.__all__]
    assert len({id(key) for key in keys}) == len(keys)
