"""Small agents with one planted bug each, and their healthy twins: the search finds the bug and nothing else.

All of them with the default faults: `python -m bench explore_corpus`.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from corpus_support import CORPUS, Planted, corpus_world, explored, found, is_clean, is_found, manifest, project, shown
from flakestorm import api
from flakestorm.api.shrink_case import case_of_line


@pytest.fixture(scope="module")
def world():
    with corpus_world() as up:
        yield up


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in manifest()])
def test_the_planted_bug_is_found_and_nothing_on_its_twin(tmp_path: Path, world, entry: Planted) -> None:
    is_found(entry, explored(tmp_path, entry, world, "bug"))
    is_clean(explored(tmp_path, entry, world, "twin"))


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in manifest() if entry.inputs])
def test_a_bug_that_needs_an_input_too_is_found_with_mutations_of_a_prompt_that_does_not_show_it(
    tmp_path: Path, world, entry: Planted
) -> None:
    alone = replace(entry, prompts=entry.prompts[:1], prompt=0)
    is_clean(explored(tmp_path, alone, world, "bug"))
    report = explored(tmp_path, alone, world, "bug", inputs=entry.inputs)
    is_found(alone, report)
    assert all(finding["input"] not in (None, alone.prompts[0]) for finding in report["findings"]), shown(report)
    is_clean(explored(tmp_path, alone, world, "twin", inputs=entry.inputs))


@pytest.mark.parametrize("name", ["makes_up_a_price", "loops_on_429"])
def test_so_it_is_with_the_default_faults(tmp_path: Path, world, name: str) -> None:
    entry = next(each for each in manifest() if each.name == name)
    report = explored(tmp_path, entry, world, "bug", modes=())
    assert found(report) == list(entry.planted), shown(report)
    assert report["coverage"]["complete"]
    is_clean(explored(tmp_path, entry, world, "twin", modes=()))


PATIENT = """
from corpus_kit import MODEL, UNAVAILABLE, model
from openai import RateLimitError

def _asked(prompt):
    with model() as client:
        for _ in range(3):
            try:
                reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": prompt}])
                return reply.choices[0].message.content or ""
            except RateLimitError:
                continue
    return UNAVAILABLE

def bug(prompt):
    return _asked("SUMMARY of " + (_asked(prompt) or UNAVAILABLE))

def twin(prompt):
    return bug(prompt) or UNAVAILABLE
"""


def test_a_bug_that_shows_one_retry_later_too_is_told_once(tmp_path: Path, world) -> None:
    """Each call is made again when it is refused, and of the second answer an empty one is passed on."""
    (tmp_path / "patient.py").write_text(PATIENT)
    second = frozenset({"llm/gpt-4o#2=empty"})
    rules = [{"id": "answers", "type": "output_not_empty", "severity": "critical"}]
    entry = Planted("patient", (second,), "answers", rules, ("a flight",), 0, ("rate_limit", "empty"), home=tmp_path)
    report = explored(tmp_path, entry, world, "bug")
    assert found(report) == [second], shown(report)
    assert report["coverage"]["complete"]
    also = {frozenset(one) for one in report["findings"][0]["also"]}
    assert {frozenset({f"llm/gpt-4o#{n}=rate_limit", "llm/gpt-4o#3=empty"}) for n in (1, 2)} <= also, shown(report)
    is_clean(explored(tmp_path, entry, world, "twin"))


@pytest.mark.parametrize("name", ["both_down", "gives_up_thrice", "pays_twice"])
def test_a_case_with_more_faults_shrinks_to_exactly_what_is_planted(tmp_path: Path, world, name: str) -> None:
    entry = next(each for each in manifest() if each.name == name)
    work = api.load(project(tmp_path, entry, world))
    (planted,) = entry.planted
    extra = {f"tool/{tool}#1=duplicate" for tool in ("search", "backup", "pay")}
    extra = {line for line in extra if line.partition("=")[0] not in {p.partition("=")[0] for p in planted}}
    line = " ".join(f"--inject {each}" for each in sorted({*planted, *extra}))
    case = case_of_line(f"flakestorm run --prompt {entry.prompt} {line}", golden=entry.prompts)
    smallest = work.shrink(case, api.Options(tapes=tmp_path / "tapes"))
    assert smallest.case is not None
    stronger = {atom.line for atom in smallest.case.atoms}
    assert {line.partition("=")[0] for line in stronger} == {line.partition("=")[0] for line in planted}
    assert smallest.invariant == entry.invariant


def test_every_agent_of_the_corpus_is_in_the_manifest() -> None:
    modules = {path.stem for path in CORPUS.glob("*.py")} - {"corpus_kit", "corpus_checks"}
    assert modules == {entry.name for entry in manifest()}
