"""Planted faults are found blind: what was injected is taken off the tapes before they are blamed."""

from pathlib import Path

import pytest

from corpus_support import Planted, blamed, cases, corpus_world, verdict_on

CASES = [pytest.param(entry, lines, id=f"{entry.name}: {' '.join(lines)}") for entry, lines in cases()]
pytestmark = pytest.mark.xdist_group("blame corpus")  # they are counted together
MISSES = 0.1
tried: list[tuple[str, bool, bool]] = []


@pytest.fixture(scope="module")
def world():
    with corpus_world() as up:
        yield up


@pytest.mark.parametrize(("entry", "schedule"), CASES)
def test_the_planted_fault_is_named(tmp_path: Path, world, entry: Planted, schedule: list[str]) -> None:
    named = blamed(tmp_path, entry, schedule, world)
    tried.append((f"{entry.name}: {schedule}", *verdict_on(named, schedule)))


def test_nine_of_ten_are_right_in_step_and_in_kind_of_fault() -> None:
    for at in (1, 2):
        missed = [each[0] for each in tried if not each[at]]
        assert len(missed) <= MISSES * len(tried), missed
