from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.engine.events import FaultTally, ScenarioInfo
from flakestorm.engine.pacing import Paced, Refusal
from flakestorm.errors import Misuse
from flakestorm.reports.document import FORMAT, dumps, from_document, read_json, to_document, write_json
from flakestorm.reports.text import encodable
from report_samples import HOSTILE, empty, hostile, large, sample

TOP = ["format", "command", "verdict", "exit_code", "seed", "started_at", "duration_ms", "scores", "cells", "runs"]
SCORE = ["value", "low", "high", "passed", "conclusive", "inconclusive", "critical_failed"]
CELL = ["scenario", "invariant", "severity", "prompt", "trial", "verdict", "reason", "run"]
RUN = [
    "id",
    "scenario",
    "prompt",
    "trial",
    "input",
    "output",
    "error",
    "latency_ms",
    "faults",
    "calls",
    "tape",
    "reproduce",
]


def test_the_published_keys_are_there() -> None:
    document = to_document(sample())
    assert document["format"] == "flakestorm-report/1"
    assert set(TOP) <= document.keys()
    assert set(SCORE) == document["scores"]["contract"].keys()
    assert set(CELL) <= document["cells"][0].keys()
    assert {*RUN, "reproduce"} <= document["runs"][0].keys()
    hit = next(run for run in document["runs"] if run["faults"]["fired"])
    assert hit["faults"].keys() == {"planned", "fired", "masked", "impossible", "idle"}
    fired = hit["faults"]["fired"][0]
    assert (fired["site"], fired["mode"], fired["detail"]) == ("tool/search_flights#1", "error:503", "no reply")


@pytest.mark.parametrize("report", [sample(), empty(), large(5, 5)], ids=["sample", "empty", "large"])
def test_reading_back_gives_the_same_report(report: Any, tmp_path: Path) -> None:
    assert from_document(to_document(report)) == report
    assert from_document(json.loads(dumps(report))) == report


def test_hostile_strings_survive_but_for_what_utf8_cannot_hold() -> None:
    document = json.loads(dumps(hostile()))
    assert document["headline"] == encodable(HOSTILE)
    assert from_document(document).runs[0].output == encodable(HOSTILE)


def test_tapes_are_named_from_the_reports_folder_and_found_again(tmp_path: Path) -> None:
    tape = tmp_path / "out" / "tapes" / "r-0001.tape"
    run = replace(sample().runs[0], tape=str(tape))
    path = write_json(replace(sample(), runs=(run, replace(run, tape=""))), tmp_path / "out" / "report.json")
    document = json.loads(path.read_text())
    assert [r["tape"] for r in document["runs"]] == ["tapes/r-0001.tape", ""]
    assert [r.tape for r in read_json(path).runs] == [str(tape), ""]


def test_numbers_json_cannot_hold_become_null() -> None:
    strange = replace(sample(), duration_ms=float("nan"))
    assert json.loads(dumps(strange))["duration_ms"] is None
    both = replace(strange, headline="\ud800", seed=2**70)
    assert json.loads(dumps(both))["duration_ms"] is None
    assert from_document(json.loads(dumps(replace(both, duration_ms=1.0)))).seed == 2**70


def test_planned_faults_may_be_a_list_and_unknown_keys_are_for_others() -> None:
    document = to_document(sample())
    document["findings"] = [{"schedule": []}]
    document["runs"][0]["verdict"] = {"type": "noise"}
    document["runs"][0]["faults"]["planned"] = [{"mode": "error"}, {"mode": "slow"}]
    assert from_document(document).runs[0].planned == 2


def test_family_is_taken_from_the_site_where_it_is_not_said() -> None:
    document = to_document(sample())
    document["runs"][0]["faults"]["fired"] = [{"site": "llm/m#1", "mode": "empty"}, {"site": "http/h#1", "mode": "x"}]
    assert [f.family for f in from_document(document).runs[0].fired] == ["llm", "tool"]


def mutate(change: Any) -> dict[str, Any]:
    document = json.loads(dumps(sample()))
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("format"), "it has no 'format', expected 'flakestorm-report/1'"),
        (lambda d: d.update(format="flakestorm-report/2"), "its format is 'flakestorm-report/2'"),
        (lambda d: d.update(verdict="maybe"), "verdict: "),
        (lambda d: d.pop("seed"), "missing required field `seed`"),
        (lambda d: d.update(exit_code="1"), "exit_code: "),
        (lambda d: d.update(runs={}), "runs: "),
        (lambda d: d["cells"][3].update(severity="mild"), "cells.3.severity: "),
        (lambda d: d["runs"][1].pop("faults"), "runs.1.faults: must be an object"),
        (lambda d: d["runs"][1]["faults"].update(fired="all"), "runs.1.faults.fired: must be a list"),
        (lambda d: d["runs"][1]["faults"].update(fired=[7]), "runs.1.faults.fired.0: must be an object"),
        (lambda d: d["runs"][1]["faults"].update(masked=[{"site": "x"}]), "runs.1.faults.masked.0.site: 'x' is not a"),
        (lambda d: d["runs"].append(7), "runs.8: "),
        (lambda d: d["scores"].update(contract=71.4), "scores: Expected `object`"),
        (lambda d: d.update(duration_ms=float("inf")), "not a valid"),
    ],
)
def test_what_is_wrong_is_named(change: Any, says: str) -> None:
    with pytest.raises(Misuse) as caught:
        from_document(mutate(change))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a JSON report"),
        (b"<html>", "not a JSON report"),
        (b"\xff\xfe\x00", "not a JSON report"),
        (b"[" * 100_000, "not a JSON report"),
        (b"[]", "it has no 'format'"),
        (b'{"format": NaN}', "NaN is not a JSON number"),
        (b'{"format": "\\u001b[31m"}', "\\\\x1b[31m"),
        (f'{{"format": "{FORMAT}", "seed": {"9" * 5000}}}'.encode(), "not a JSON report"),
    ],
)
def test_hostile_files_are_refused_with_a_plain_message(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(Misuse) as caught:
        read_json(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_missing_file_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot be read: No such file"):
        read_json(tmp_path / "none.json")


def test_a_file_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flakestorm.reports.document.LIMIT_BYTES", 10)
    with pytest.raises(Misuse, match="larger than"):
        read_json(write_json(sample(), tmp_path / "report.json"))


paths = st.lists(st.sampled_from([*TOP, *CELL, *RUN, *SCORE, 0, 1, "fired", "contract"]), min_size=1, max_size=4)


@given(paths, st.none() | st.integers() | st.text(max_size=3) | st.lists(st.none(), max_size=2) | st.just({}))
def test_one_value_changed_gives_a_report_or_misuse(path: list[Any], value: Any) -> None:
    document = json.loads(dumps(sample()))
    at: Any = document
    for step in path[:-1]:
        at = (
            at[step]
            if (isinstance(at, dict) and step in at) or (at and isinstance(at, list) and step in (0, 1))
            else at
        )
    if isinstance(at, dict) or (isinstance(at, list) and path[-1] in (0, 1)):
        at[path[-1]] = value
    with suppress(Misuse):
        assert from_document(document).command == document["command"]


def test_what_became_of_every_fault_comes_back_and_may_be_absent() -> None:
    base = sample()
    hit = base.runs[2].fired
    told = ScenarioInfo("search-down", ("tool/search_flights=error:503",), (FaultTally("tool/a=error", 2, 1, 0, 1, 0),))
    report = replace(base, scenarios=(told,), runs=(replace(base.runs[0], impossible=hit, idle=hit),))
    document = to_document(report)
    assert from_document(document) == report
    for run in document["runs"]:
        del run["faults"]["impossible"], run["faults"]["idle"]
    del document["scenarios"][0]["tallies"]
    read = from_document(document)
    assert (read.runs[0].impossible, read.runs[0].idle, read.scenarios[0].tallies) == ((), (), ())


def test_refusals_and_what_they_held_back_are_read_back() -> None:
    report = sample()
    refused = replace(report.runs[0], refusals=(Refusal("llm/gpt-4o#1", 429, 20.0), Refusal("tool/search#2", 503)))
    report = replace(report, runs=(refused, *report.runs[1:]), pacing=Paced(2, 1, 1, 20.0, 4, 0.0))
    assert from_document(json.loads(dumps(report))) == report
