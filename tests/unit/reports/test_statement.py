import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from flakestorm.engine.events import Score
from flakestorm.reports.statement import Subject, Terms, of, problems, threshold
from report_samples import empty, hostile, sample

SCHEMA = Path(__file__).resolve().parents[3] / "docs" / "reference" / "certificate.schema.json"
TAPE = Subject("r-0001", "tapes/r-0001.tape", "ab" * 32)


def statement(report=None, terms=None):
    return of(report or sample(), [TAPE], terms or Terms("Ada"), issued_at="2026-05-05T00:00:00Z")


def test_it_is_a_statement_about_tapes() -> None:
    said = statement()
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["subject"] == [{"name": "tapes/r-0001.tape", "digest": {"sha256": "ab" * 32}}]
    assert problems(said) is None
    p = said["predicate"]
    assert p["tester"] == {"name": "Ada"}
    assert p["scores"]["contract"]["low"] == 55.1
    assert p["scores"]["contract"]["full"] == 100
    assert [run["tape"] for run in p["runs"][:2]] == ["tapes/r-0001.tape", None]
    assert {i["id"] for i in p["contract"]["invariants"]} == {i.id for i in sample().invariants}
    square = next(s for s in p["matrix"] if (s["scenario"], s["invariant"]) == ("booking-times-out", "fast"))
    assert (square["passed"], square["conclusive"]) == (1, 2)
    assert 0 < square["low"] < 0.5 < square["high"] < 1
    assert p["tools"][0] == {"name": "flakestorm", "version": "3.0.0", "did": "the runs"}


@pytest.mark.parametrize("make", [sample, hostile, empty])
def test_it_is_what_the_schema_says(make) -> None:
    said = statement(make(), Terms(pass_threshold=50.0, config_sha256="cd" * 32))
    said["predicate"]["page"] = {"name": "x.html", "digest": {"sha256": "ab" * 32}}
    jsonschema.validate(said, json.loads(SCHEMA.read_text()))


def test_it_is_json_whatever_agents_said() -> None:
    json.dumps(statement(hostile()), allow_nan=False).encode()


@pytest.mark.parametrize(
    ("changes", "least", "outcome", "verdict"),
    [
        ({"verdict": "pass"}, None, None, "pass"),
        ({"verdict": "pass"}, 71.43, "pass", "pass"),
        ({"verdict": "pass"}, 72, "fail", "fail"),
        ({"verdict": "fail"}, 10, "pass", "fail"),
        ({"verdict": "inconclusive"}, 10, "pass", "inconclusive"),
        ({"verdict": "pass", "interrupted": True}, 10, "inconclusive", "inconclusive"),
        ({"verdict": "pass", "stopped": "10 runs"}, None, None, "inconclusive"),
        ({"verdict": "pass", "saved": 3}, 10, "inconclusive", "inconclusive"),
        ({"verdict": "pass", "saved": 3}, None, None, "pass"),
        ({"verdict": "pass", "scores": {}}, 10, "inconclusive", "inconclusive"),
        ({"verdict": "pass", "scores": {"overall": Score(0.8, 0.7, 0.9, 8, 10, 0)}}, 80, "pass", "pass"),
        ({"verdict": "pass", "scores": {"chaos": Score(None, None, None, 0, 0, 4)}}, 0, "inconclusive", "inconclusive"),
    ],
)
def test_a_threshold_only_ever_makes_it_worse(changes, least, outcome, verdict) -> None:
    report = replace(sample(), **changes)
    held = threshold(report, least)
    assert (held and held["outcome"]) == outcome
    assert statement(report, Terms(pass_threshold=least))["predicate"]["verdict"] == verdict


@pytest.mark.parametrize("wrong", [
    None, [], {}, {"_type": "x"},
    {**statement(), "predicateType": "x"},
    {**statement(), "subject": []},
    {**statement(), "subject": [{"name": "x"}]},
    {**statement(), "subject": [{"digest": {"sha256": "x"}}]},
    {**statement(), "subject": [{"name": 1, "digest": {"sha256": "x"}}]},
    {**statement(), "predicate": None},
])  # fmt: skip
def test_what_is_none_is_said_so(wrong) -> None:
    assert problems(wrong)
