from pathlib import Path

import pytest

from corpus_support import corpus_world, manifest, project
from flakestorm import api
from flakestorm.api.blame_case import agent_of, case_of, failing_run
from flakestorm.errors import Misuse

ENTRY = next(entry for entry in manifest() if entry.name == "makes_up_a_price")


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("case")
    with corpus_world() as up:
        work = api.load(project(folder, ENTRY, up))
        yield work, work.inject(0, ["tool/search#1=error"], api.Options(tapes=folder / "tapes"))


def test_a_failing_run_becomes_a_case(failed) -> None:
    work, report = failed
    run, breaks = failing_run(report)
    assert breaks == ("admits",)
    case = case_of(work, Path(run.tape), run=run, breaks=breaks)
    assert str(case.invariant.id) == "admits"
    (event,) = case.events
    assert (event.site, event.kind, event.fault, event.looks_like) == ("tool/search#1", "fault", "error", "error")
    assert case.offset == 0


def test_a_tape_alone_is_judged_by_the_config(failed) -> None:
    work, report = failed
    case = case_of(work, Path(report.runs[0].tape), healthy="another question")
    assert "does not say so" in case.reason
    assert [event.site for event in case.events] == ["agent/input#1", "tool/search#1"]
    assert (case.input_at(0), case.input_at(1)) == ("another question", ENTRY.prompts[0])


def test_what_is_no_case_is_refused(failed) -> None:
    work, report = failed
    tape = Path(report.runs[0].tape)
    with pytest.raises(Misuse, match="there is no invariant"):
        case_of(work, tape, invariant="nothing")
    with pytest.raises(Misuse, match="no run r-0099"):
        failing_run(report, "r-0099")
    assert agent_of(work, tape) is work
    with pytest.raises(Misuse, match="with -c"):
        agent_of(None, tape)
    assert agent_of(work, tape, ["python", "agent.py"]).config.agent.type == "command"
