import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from flakestorm.reports.sarif import SECURITY, sarif
from report_samples import empty, hostile, large, sample

SCHEMA = json.loads((Path(__file__).parents[2] / "data" / "schemas" / "sarif-2.1.0.json").read_text())


def read(report) -> dict:
    document = json.loads(sarif(report))
    Draft7Validator(SCHEMA, format_checker=Draft7Validator.FORMAT_CHECKER).validate(document)
    [run] = document["runs"]
    return run


@pytest.mark.parametrize("make", [sample, hostile, empty, large])
def test_it_is_valid(make) -> None:
    read(make())


def test_a_broken_security_promise_is_a_finding_and_no_other_is() -> None:
    run = read(sample())
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["no-false-booking"]
    assert [(r["ruleId"], r["level"], r["properties"]["prompt"]) for r in run["results"]] == [
        ("no-false-booking", "error", 0),
        ("no-false-booking", "error", 1),
    ]
    assert "failed in scenario booking-times-out" in run["results"][0]["message"]["text"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "flakestorm.yaml"


def test_fingerprints_are_stable_and_tell_findings_apart() -> None:
    def prints(report) -> list[str]:
        return [r["partialFingerprints"]["flakestorm/v1"] for r in read(report)["results"]]

    again = replace(sample(), seed=7, cells=tuple(replace(c, reason="other words") for c in sample().cells))
    assert prints(sample()) == prints(again)
    assert len(set(prints(sample()))) == 2


def test_what_was_not_judged_is_not_taken_for_clean() -> None:
    base = sample()
    cells = tuple(replace(c, verdict="inconclusive", reason="nothing fired") for c in base.cells)
    run = read(replace(base, cells=cells, verdict="inconclusive", exit_code=3))
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is False
    told = [n["message"]["text"] for n in run["invocations"][0]["toolExecutionNotifications"]]
    assert any("no-false-booking could not be judged in scenario search-down" in text for text in told)
    assert "no invariant of this report is about security" in json.dumps(read(empty()))


def test_every_type_about_security_is_one_there_is() -> None:
    from flakestorm.config.vocabulary import INVARIANT_TYPES

    assert SECURITY.keys() <= INVARIANT_TYPES.words


def test_hostile_text_stays_text() -> None:
    base = hostile()
    secure = replace(base, invariants=tuple(replace(i, type="excludes_pii") for i in base.invariants))
    run = read(secure)
    assert run["results"]
    text = sarif(secure)
    assert "\x1b" not in text
    assert "\u202e" not in text
