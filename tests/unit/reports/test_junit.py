import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.reports.junit import junit
from report_samples import HOSTILE, empty, hostile, large, sample

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).parents[2] / "data" / "schemas" / "junit-10.xsd"))


def cases(report) -> dict[str, ET.Element]:
    root = ET.fromstring(junit(report))
    return {f"{case.get('classname')} {case.get('name')}": case for case in root.iter("testcase")}


@pytest.mark.parametrize("make", [sample, hostile, empty, lambda: large(20, 10)])
def test_it_is_valid(make) -> None:
    SCHEMA.validate(ET.fromstring(junit(make())))


def test_every_cell_is_a_test_case_and_none_that_did_not_pass_looks_as_if_it_had() -> None:
    report = sample()
    found = cases(report)
    assert len(found) == len(report.cells)
    for cell in report.cells:
        case = found[f"contract run.{cell.scenario} {cell.invariant} [prompt {cell.prompt}, trial 1]"]
        told = [child.tag for child in case]
        assert told == {"pass": [], "fail": ["failure"]}.get(cell.verdict, told)
        assert cell.verdict != "inconclusive" or told in (["skipped"], ["error"])


def test_what_could_not_be_judged_at_all_is_an_error_and_what_missed_one_run_is_skipped() -> None:
    found = cases(sample())
    never = found["contract run.model-cut-short always-answers [prompt 0, trial 1]"]
    once = found["contract run.booking-times-out always-answers [prompt 1, trial 1]"]
    assert [child.tag for child in never] == ["error"]
    assert [child.tag for child in once] == ["skipped"]
    assert "no planned fault fired" in str(never[0].get("message"))


def test_a_failure_tells_what_a_reader_needs() -> None:
    case = cases(sample())["contract run.booking-times-out no-false-booking [prompt 0, trial 1]"]
    said = case[0].text or ""
    assert "output: Your flight NW-118 to Oslo is booked." in said
    assert "fired: tool/book_flight#1 timeout:300" in said
    assert "again: flakestorm run --seed 42 --prompt 0" in said


def test_counts_are_those_of_the_cases() -> None:
    root = ET.fromstring(junit(sample()))
    suites = root.findall("testsuite")
    assert sum(int(suite.get("tests", 0)) for suite in suites) == len(sample().cells)
    assert sum(int(suite.get("failures", 0)) for suite in suites) == sum(c.verdict == "fail" for c in sample().cells)


def test_nothing_judged_is_not_an_empty_success() -> None:
    [case] = cases(empty()).values()
    assert case[0].tag == "error"
    assert case[0].get("message") == "The agent could not be reached."


def passing(**more):
    """A report all of whose cells passed, or missed a run beside others that passed."""
    base = sample()
    kept = tuple(c for c in base.cells if c.scenario in ("no-chaos", "booking-times-out") and c.verdict != "fail")
    return replace(base, cells=tuple(c for c in kept if c.invariant == "always-answers"), **more)


@pytest.mark.parametrize(("verdict", "tag"), [("inconclusive", "error"), ("fail", "failure"), ("pass", None)])
def test_a_verdict_that_no_cell_tells_of_is_a_test_case_of_its_own(verdict, tag) -> None:
    """Interrupted, out of budget, a score too low: every cell that was judged may have passed."""
    report = passing(verdict=verdict, headline="the budget was reached")
    root = ET.fromstring(junit(report))
    SCHEMA.validate(root)
    red = [child for case in root.iter("testcase") for child in case if child.tag in ("failure", "error")]
    assert [(child.tag, child.get("message")) for child in red] == ([(tag, report.headline)] if tag else [])
    assert int(root.get("errors")) + int(root.get("failures")) == len(red)


def test_a_score_has_its_interval_and_its_counts() -> None:
    said = {p.get("name"): p.get("value") for p in ET.fromstring(junit(sample())).iter("property")}
    assert said["score.contract"] == "71.43"
    assert said["score.contract.evidence"] == "95% interval 55.1 to 83.2; 13 of 19 passed, 7 inconclusive"


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(), max_size=40))
def test_any_text_gives_xml_that_can_be_read(text) -> None:
    base = sample()
    report = replace(
        base,
        headline=text,
        cells=tuple(replace(c, reason=text) for c in base.cells),
        runs=tuple(replace(r, output=text, error=None) for r in base.runs),
    )
    SCHEMA.validate(ET.fromstring(junit(report)))


def test_hostile_text_is_kept_as_text() -> None:
    assert HOSTILE[:20] in "".join(ET.fromstring(junit(hostile())).itertext())
