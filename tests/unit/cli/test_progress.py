import json
import os
from pathlib import Path

import pytest

from flakestorm.cli.progress import VARIABLE, asked_for
from flakestorm.engine.events import Event, Note, Planned, Progressed, RunFinished
from report_samples import sample


def test_events_become_lines_and_are_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, seen = tmp_path / "progress", list[Event]()
    monkeypatch.setenv(VARIABLE, str(file))
    tell = asked_for(seen.append)
    assert VARIABLE not in os.environ  # an agent's own flakestorm would write there too
    events = [Planned("shrink", 200), RunFinished(sample().runs[0]), Note("x"), Progressed("1 fault left")]
    for event in events:
        tell(event)
    assert seen == events
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["done"], line["planned"], line["said"]) for line in lines] == [
        (0, 200, ""),
        (1, 200, ""),
        (1, 200, "1 fault left"),
    ]


def test_nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    seen = list[Event]()
    tell = asked_for(seen.append)
    tell(Note("x"))
    assert seen == [Note("x")]
