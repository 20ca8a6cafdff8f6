"""Agents made with frameworks: their planted bugs are found and blamed, and their healthy twins stay clean."""

from pathlib import Path

import pytest

from corpus_support import Planted, blamed, cases, corpus_world, explored, is_clean, is_found, manifest, verdict_on

HOME = Path(__file__).parent / "corpus"
CASES = [pytest.param(entry, lines, id=f"{entry.name}: {' '.join(lines)}") for entry, lines in cases(HOME)]


@pytest.fixture(scope="module")
def world():
    with corpus_world() as up:
        yield up


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in manifest(HOME)])
def test_the_planted_bug_is_found_and_nothing_on_its_twin(tmp_path: Path, world, entry: Planted) -> None:
    is_found(entry, explored(tmp_path, entry, world, "bug"))
    is_clean(explored(tmp_path, entry, world, "twin"))


@pytest.mark.parametrize("name", ["typed_cut_short"])
def test_so_it_is_with_the_default_faults(tmp_path: Path, world, name: str) -> None:
    entry = next(each for each in manifest(HOME) if each.name == name)
    is_found(entry, explored(tmp_path, entry, world, "bug", modes=()))
    is_clean(explored(tmp_path, entry, world, "twin", modes=()))


@pytest.mark.parametrize(("entry", "schedule"), CASES)
def test_the_planted_fault_is_named(tmp_path: Path, world, entry: Planted, schedule: list[str]) -> None:
    named = blamed(tmp_path, entry, schedule, world)
    assert verdict_on(named, schedule) == (True, True), (named.conclusion, named.named)


def test_every_agent_of_the_corpus_is_in_the_manifest() -> None:
    assert {path.stem for path in HOME.glob("*.py")} - {"frameworks_kit"} == {entry.name for entry in manifest(HOME)}
