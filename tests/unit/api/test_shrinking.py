import random
from dataclasses import replace
from pathlib import Path

import pytest

from corpus_support import corpus_world, manifest, project
from flakestorm import api
from flakestorm.api.shrinking import Case, _steps, case_of_line, case_of_tape, session_of
from flakestorm.config.replays import ReplaySession
from flakestorm.core.conversation import Conversation
from flakestorm.engine.asking import Asker
from flakestorm.engine.atoms import Ask, Failure, Outcome
from flakestorm.engine.repertoire import Repertoire
from flakestorm.errors import Misuse
from search_support import BROKEN, agent, atoms, drive

ENTRY = next(entry for entry in manifest() if entry.name == "makes_up_a_price")


def test_a_case_is_read_from_the_line_that_shows_it() -> None:
    case = case_of_line("flakestorm run --seed 3 --prompt 1 --inject 'tool/a#1=error:503'", golden=["x", "y"])
    assert (case.prompt, case.text, case.seed, case.atoms) == (1, None, 3, atoms("a#1=error:503"))
    assert case_of_line("flakestorm run --input y", golden=["x", "y"]).prompt == 1
    talk = case_of_line("flakestorm run --input hello --input 'pay now'", golden=["x"]).text
    assert isinstance(talk, Conversation)
    assert talk.turns == ("hello", "pay now")
    with pytest.raises(Misuse):
        case_of_line("flakestorm run --inject nonsense", golden=["x"])


def test_from_a_tape_to_a_session(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up))
        run = work.inject(0, ["tool/search#1=error"], api.Options(tapes=tmp_path / "a")).runs[0]
        case = case_of_tape(Path(run.tape), golden=ENTRY.prompts)
        assert (case.atoms, case.prompt) == (atoms("search#1=error"), 0)
        smallest = work.shrink(case, api.Options(tapes=tmp_path / "b"))
    session = session_of(smallest, contract="default")
    assert ReplaySession.of(session).tool_responses[0].status == 503


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
    for seed in range(10):
        luck = random.Random(seed)

        def moody(ask: Ask, luck: random.Random = luck) -> Outcome:
            outcome = plain(ask)
            return replace(outcome, failures=(BROKEN,)) if luck.random() < 0.05 else outcome

        best: list[tuple[Outcome, Failure]] = []
        drive(_steps(Asker(), case, modes, random.Random(seed), "x", best, may_shorten=False), moody)
        assert best[-1][0].fired == planted


def test_a_case_on_a_tape_keeps_the_settings_of_its_faults(tmp_path: Path) -> None:
    with corpus_world() as up:
        path = project(tmp_path, ENTRY, up)
        fault = "{tool: search, mode: error, error_code: 500, message: 'no, not now', times: 2}"
        path.write_text(f"{path.read_text()}\nchaos:\n  tool_faults: [{fault}]\n")
        work = api.load(path)
        run = work.chaos(None, api.Options(tapes=tmp_path / "a")).runs[0]
        case = case_of_tape(Path(run.tape), golden=ENTRY.prompts)
        (fault,) = case.atoms
        assert (str(fault.site), fault.fault) == ("tool/search#1", "error:500,message=no%2C not now")
        smallest = work.shrink(case, api.Options(tapes=tmp_path / "b"))
    assert smallest.case is not None


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
