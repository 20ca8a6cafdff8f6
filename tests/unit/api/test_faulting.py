import json
from pathlib import Path

import pytest

from flakestorm.api import Options, load
from flakestorm.api.asking import ask
from flakestorm.engine.events import Report
from upstream import Upstream, document

AGENT = """
import httpx

def answer(text):
    for attempt in range(2):
        reply = httpx.post("{url}/search", json={{"to": text}})
        if reply.status_code == 200:
            return text + str(reply.json()["n"])
    return "sorry: " + httpx.post("{url}/excuse", json={{}}).text
"""


@pytest.fixture
def up():
    with Upstream() as upstream:
        upstream.reply("/search", document({"n": 3}))
        upstream.reply("/excuse", document({}))
        yield upstream


def judged(up: Upstream, folder: Path, *injections: str, live: bool = False) -> Report:
    (folder / "faulted_agent.py").write_text(AGENT.format(url=up.url))
    config = {
        "version": "2.0",
        "agent": {"type": "python", "endpoint": "faulted_agent:answer"},
        "golden_prompts": ["x"],
        "invariants": [{"type": "regex", "pattern": "3$", "id": "found"}],
        "boundary": {"tools": {"search": "*/search", "excuse": "*/excuse"}, "allow_live": live},
    }
    (folder / "flakestorm.yaml").write_text(json.dumps(config))
    project = load(folder / "flakestorm.yaml")
    tape = folder / "a.tape"
    if not tape.exists():
        ask(project, "Rome", tape, Options(seed=1))
    before = up.count()
    report = project.inject(None, injections, Options(seed=1, tapes=folder / "tapes"), tape=tape)
    assert live or up.count() == before
    return report


def test_a_retry_that_the_tape_answers_is_judged_and_nothing_goes_out(up: Upstream, tmp_path: Path) -> None:
    report = judged(up, tmp_path, "tool/search#1=error:503")
    (run,) = report.runs
    assert (report.exit_code, run.output, run.input) == (0, "Rome3", "Rome")
    assert [str(fired.site) for fired in run.fired] == ["tool/search#1"]


def test_what_the_tape_cannot_answer_after_a_fault_is_inconclusive_or_live(up: Upstream, tmp_path: Path) -> None:
    faults = ("tool/search#1=error:503", "tool/search#2=error:503")
    report = judged(up, tmp_path, *faults)
    assert report.exit_code == 3
    assert "no answer for tool/excuse#1" in report.cells[0].reason
    report = judged(up, tmp_path, *faults, live=True)
    assert (report.exit_code, up.count("/excuse")) == (1, 1)


def test_a_fault_that_never_fires_proves_nothing(up: Upstream, tmp_path: Path) -> None:
    assert judged(up, tmp_path, "tool/book#1=error:503", live=True).exit_code == 3
    assert up.count() == 1
