import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from flakestorm.engine.events import Finished, Note, Planned, RunFinished
from flakestorm.errors import ConfigError
from flakestorm.reports.document import from_document, to_document
from flakestorm.store import lull
from flakestorm.store.database import VARIABLE
from flakestorm.store.saving import Saving
from flakestorm.store.sqlite import Store
from report_samples import sample

pytestmark = pytest.mark.usefixtures("database")


def tell(saving, report, *, until=None) -> None:
    saving(Planned(report.command, len(report.runs), replace(report, runs=(), cells=(), interrupted=True)))
    for run in report.runs[:until]:
        saving(RunFinished(run, tuple(cell for cell in report.cells if cell.run == run.id)))


def test_a_finished_command_is_saved_whole(tmp_path) -> None:
    with Saving(tmp_path / "s", to_document) as saving:
        tell(saving, sample())
        saving(Note("by the way"))
        saving(Finished(sample()))
    assert saving.problem is None
    with Store(tmp_path / "s") as store:
        assert from_document(store.document(str(saving.id))) == sample()


def test_threads_take_short_turns_while_the_end_is_written_and_not_after(tmp_path) -> None:
    before = sys.getswitchinterval()
    with Saving(tmp_path / "s", to_document) as saving:
        tell(saving, sample())
        saving(Finished(sample()))
        saving(Finished(sample()))
        assert sys.getswitchinterval() < before
    assert sys.getswitchinterval() == before


def test_a_command_that_breaks_off_leaves_what_had_finished(tmp_path) -> None:
    with Saving(tmp_path / "s", to_document) as saving:
        tell(saving, sample(), until=5)
    assert saving.id is None
    with Store(tmp_path / "s") as store:
        [entry] = store.entries()
    assert (entry.done, entry.runs) == (False, 5)


def test_a_command_that_never_began_leaves_nothing(tmp_path) -> None:
    with Saving(tmp_path / "s", to_document) as saving:
        saving(Finished(sample()))
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_written_costs_a_note_and_nothing_else(tmp_path, database, monkeypatch) -> None:
    (tmp_path / "s").write_text("in the way")
    if database == "postgres":
        monkeypatch.setenv(VARIABLE, "postgresql://127.0.0.1:1/nobody")
    with Saving(tmp_path / "s", to_document) as saving:
        tell(saving, sample())
        saving(Finished(sample()))
    assert saving.id is None
    assert "the store" in str(saving.problem)


def test_a_defect_costs_a_note_and_nothing_else(tmp_path) -> None:
    with Saving(tmp_path / "s", lambda report: {}) as saving:
        tell(saving, sample())
        saving(Finished(sample()))
    assert "KeyError" in str(saving.problem)


def test_a_plan_that_is_extended_on_the_way_is_one_report(tmp_path) -> None:
    report = sample()
    with Saving(tmp_path / "s", to_document) as saving:
        tell(saving, replace(report, scenarios=report.scenarios[:1]), until=2)
        tell(saving, report)
        saving(Finished(report))
    with Store(tmp_path / "s") as store:
        [entry] = store.entries()
        assert from_document(store.document(entry.id)) == report


def test_what_a_run_costs_does_not_grow_with_the_plan(tmp_path) -> None:
    """Everything but the first and the last document holds one run and nothing of the plan."""
    encoded, parts_done = [], threading.Event()

    def encode(report):
        encoded.append(report)
        if len(encoded) == 9:
            parts_done.set()
        return to_document(report)

    with Saving(tmp_path / "s", encode) as saving:
        tell(saving, sample())
        assert parts_done.wait(60)
        saving(Finished(sample()))
    outline, *parts, whole = encoded
    assert (outline.scenarios, whole) == (sample().scenarios, sample())
    assert [(len(part.runs), part.scenarios, part.invariants, part.prompts) for part in parts] == [(1, (), (), ())] * 8


def test_what_came_in_last_is_written_with_the_whole_and_not_twice(tmp_path) -> None:
    encoded = []

    def encode(report):
        encoded.append(report)
        return to_document(report)

    with Saving(tmp_path / "s", encode) as saving, lull._at_work:  # so that nothing is written yet
        tell(saving, sample())
        saving(Finished(sample()))
    assert [len(report.runs) for report in encoded] == [0, 8]
    with Store(tmp_path / "s") as store:
        assert from_document(store.document(str(saving.id))) == sample()


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from flakestorm.engine.events import Finished, Planned, RunFinished
from flakestorm.reports.document import to_document
from flakestorm.store.saving import Saving
from report_samples import sample
report = sample()
done = Saving(Path(sys.argv[1]), to_document)
done(Planned("contract run", 1, replace(report, runs=(), cells=())))
done(Finished(report))
done.close()
print(done.id, flush=True)
half = Saving(Path(sys.argv[1]), to_document)
half(Planned("contract run", 8, replace(report, runs=(), cells=())))
for run in report.runs:
    half(RunFinished(run))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_told_to_be_saved_survives_a_kill(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "s")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Store(tmp_path / "s", write=True) as store:
        assert from_document(store.document(done.stdout.strip())) == sample()
        store.save(to_document(sample()))


def test_a_command_that_is_refused_before_any_run_leaves_no_report(tmp_path) -> None:
    refused = ConfigError("there is no such function", key="agent.endpoint")
    for until, error, left in ((0, refused, []), (0, KeyboardInterrupt(), [0]), (5, refused, [0, 5])):
        saving = Saving(tmp_path / "s", to_document)
        tell(saving, sample(), until=until)
        with pytest.raises(type(error)), saving:
            raise error
        assert (saving.id, saving.problem) == (None, None)
        with Store(tmp_path / "s") as store:
            assert sorted(entry.runs for entry in store.entries()) == left
