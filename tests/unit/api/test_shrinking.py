import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from corpus_support import corpus_world, manifest, project
from flakestorm import api
from flakestorm.api.shrink_case import Case, case_of_line, case_of_session, case_of_tape
from flakestorm.api.shrinking import _steps, session_of
from flakestorm.engine.asking import Asker
from flakestorm.engine.atoms import Ask, Failure, Outcome
from flakestorm.engine.repertoire import Repertoire
from flakestorm.errors import Misuse
from flakestorm.sessions.files import write_session
from search_support import BROKEN, agent, atoms, drive

ENTRY = next(entry for entry in manifest() if entry.name == "makes_up_a_price")


def test_from_a_tape_to_a_session(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up))
        run = work.inject(0, ["tool/search#1=error"], api.Options(tapes=tmp_path / "a")).runs[0]
        case = case_of_tape(Path(run.tape), golden=ENTRY.prompts)
        assert (case.atoms, case.prompt) == (atoms("search#1=error"), 0)
        smallest = work.shrink(case, api.Options(tapes=tmp_path / "b"))
    session = session_of(smallest, work.config)
    assert session.tool_responses[0].status == 503
    assert case_of_session(session).atoms == atoms("search#1=error:503")


KINDS = {  # agent of the corpus: more faults than it takes
    "partial_json": "llm/gpt-4o#1=truncated_response:5",
    "trusts_text": "tool/hotel#1=indirect_injection",
    "pays_twice": "tool/pay#1=timeout_after_commit",
    "loops_on_429": "llm/gpt-4o=rate_limit",
    "races": "tool/weather#1=slow:1000",
    "gives_up_thrice": "tool/search#1=timeout tool/search#2=empty tool/search#3=malformed",
    "no_retry": "tool/search#1=connection_reset",
    "refund_only": "tool/refund#1=error",
}


@pytest.mark.parametrize("name", KINDS)
def test_the_line_and_the_session_of_every_kind_show_it_again(tmp_path: Path, name: str) -> None:
    entry = next(entry for entry in manifest() if entry.name == name)
    with corpus_world() as up:
        work = api.load(project(tmp_path, entry, up))
        line = " ".join(f"--inject {fault}" for fault in KINDS[name].split())
        case = case_of_line(f"flakestorm run --prompt {entry.prompt} {line}", golden=entry.prompts)
        smallest = work.shrink(case, api.Options(tapes=tmp_path / "a"))
        assert smallest.invariant == entry.invariant

        def fails(again: Case) -> bool:
            injected = [atom.line for atom in sorted(again.atoms)]
            prompt = again.text if again.prompt is None else again.prompt
            report = work.inject(prompt, injected, api.Options(tapes=tmp_path / "b", seed=again.seed))
            return any(cell.verdict == "fail" and cell.invariant == entry.invariant for cell in report.cells)

        assert fails(case_of_line(smallest.line, golden=entry.prompts))
        session = session_of(smallest, work.config)
        told = {re.split("[:,]", line.partition("=")[2])[0] for line in session.faults}
        told |= {reply.fault for reply in session.tool_responses if reply.fault}
        assert told == {atom.mode for atom in smallest.case.atoms}
        write_session(session, tmp_path / "case.yaml")
        replayed = work.replay(tmp_path / "case.yaml", api.Options(tapes=tmp_path / "c"))
        beyond = told & {"slow", "timeout_after_commit"}  # a reply on record takes no time, and reaches no tool
        assert replayed.verdict == "fail" or beyond, replayed.headline


def test_a_case_that_does_not_fail_says_so(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up, which="twin"))
        case = case_of_line("flakestorm run --prompt 0 --inject tool/search#1=error", golden=ENTRY.prompts)
        smallest = work.shrink(case, api.Options(tapes=tmp_path / "b"))
    assert smallest.case is None
    assert "does not fail" in smallest.why


def test_chance_does_not_lead_the_shrinker_astray() -> None:
    planted = atoms("t1#1=error", "t4#1=timeout")
    plain = agent([f"t{n}#1" for n in range(6)], ["t1#1=error", "t4#1=timeout"])
    case = Case(atoms("t0#1=timeout", "t1#1=error", "t2#1=malformed", "t4#1=timeout", "t5#1=error"), 0)
    modes = Repertoire(tool=("error", "timeout", "malformed"))
    for seed in range(20):
        luck = random.Random(seed)

        def moody(ask: Ask, luck: random.Random = luck) -> Outcome:
            outcome = plain(ask)
            return replace(outcome, failures=(BROKEN,)) if luck.random() < 0.05 else outcome

        best: list[tuple[Outcome, Failure]] = []
        drive(_steps(Asker(), case, modes, random.Random(seed), "x", best, may_shorten=False), moody)
        assert best[-1][0].fired == planted


def test_a_case_that_is_resumed_makes_no_run_twice(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up))
        case = case_of_line(
            "flakestorm run --inject tool/search#1=empty --inject tool/pay#1=error", golden=ENTRY.prompts
        )
        part = work.shrink(case, api.Options(tapes=tmp_path / "a"), budget=2)
        assert part.report is not None
        assert part.report.stopped
        whole = work.shrink(case, api.Options(tapes=tmp_path / "b", resume=part.report))
        assert whole.report is not None
        assert len(list((tmp_path / "b").iterdir())) == whole.runs - len(part.report.runs)
        fresh = work.shrink(case, api.Options(tapes=tmp_path / "c"))
        assert (whole.case, whole.line) == (fresh.case, fresh.line)
        assert [finding.invariant for finding in whole.report.findings] == [whole.invariant]
        with pytest.raises(Misuse, match="not of `shrink`"):
            work.shrink(case, api.Options(resume=replace(part.report, command="explore")))
