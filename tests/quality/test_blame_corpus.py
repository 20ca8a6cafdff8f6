"""Planted faults are found blind: what was injected is taken off the tapes before they are blamed."""

from dataclasses import replace
from pathlib import Path

import pytest

from corpus_support import Planted, corpus_world, manifest, project
from flakestorm import api
from flakestorm.api.blame_case import case_of
from flakestorm.api.blaming import blame
from flakestorm.engine.blamed import Blaming

SAME = {"timeout_after_commit": "timeout"}  # the reply does not tell
CASES = [
    pytest.param(entry, sorted(schedule), id=f"{entry.name}: {' '.join(sorted(schedule))}")
    for entry in manifest()
    for schedule in entry.planted
    if not any("=slow" in line for line in schedule)  # the tape does not take its time
]
pytestmark = pytest.mark.xdist_group("blame corpus")  # they are counted together
MISSES = 0.1
tried: list[tuple[str, bool, bool]] = []


@pytest.fixture(scope="module")
def world():
    with corpus_world() as up:
        yield up


def blamed(folder: Path, entry: Planted, schedule: list[str], up) -> Blaming:
    work = api.load(project(folder, entry, up))
    run = work.inject(entry.prompt, schedule, api.Options(tapes=folder / "tapes")).runs[0]
    case = case_of(work, Path(run.tape), run=run, breaks=[entry.invariant])
    bare = [replace(x, faults=(), world=None, world_body=None) for x in case.exchanges]
    found = blame(work, replace(case, exchanges=bare), api.Options(tapes=folder / "continued")).blame
    assert found is not None
    return found


@pytest.mark.parametrize(("entry", "schedule"), CASES)
def test_the_planted_fault_is_named(tmp_path: Path, world, entry: Planted, schedule: list[str]) -> None:
    found = blamed(tmp_path, entry, schedule, world)
    planted = {line.partition("=")[0]: line.partition("=")[2].partition(":")[0] for line in schedule}
    step = found.named
    site = "" if step is None else step.event.site
    mode = planted.get(site) or planted.get(site.partition("#")[0], "")
    right = bool(mode)
    tried.append((f"{entry.name}: {schedule}", right, right and step.event.looks_like == SAME.get(mode, mode)))


def test_nine_of_ten_are_right_in_step_and_in_kind_of_fault() -> None:
    for at in (1, 2):
        missed = [each[0] for each in tried if not each[at]]
        assert len(missed) <= MISSES * len(tried), missed
