import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape

import pytest

from flakestorm.engine.loaded import LatencyAt, LevelResult, LimitAt, Loaded, PromiseAt
from flakestorm.reports import document, html, junit, markdown, terminal
from flakestorm.reports.loaded import HEAD, load_lines, load_rows
from report_samples import HOSTILE, sample

HALF = (LatencyAt(50, 120.46, 99.96, None, 39), LatencyAt(90, None, 130.0, None, 39))
BROKEN = PromiseAt("own-name", 20, 40, 0, 0.352, 0.648, True, True)
LEVELS = (
    LevelResult("1 user", 1, 5, 5, 0, 500.0, 10.0, 0.9, 3.0, (), (PromiseAt("own-name", 5, 5, 0, 0.57, 1.0, False),)),
    LevelResult("10 users", 10, 40, 38, 1, None, None, None, 30.4, HALF, (BROKEN,)),
)
LOAD = Loaded(LEVELS, 10, "the knee is at 10 users")
LIMITS = (LimitAt(50, 200.0, "fail", "250 ms [210 ms, 300 ms] in 40 runs"), LimitAt(95, 900.0, "inconclusive", "few"))


def test_rows_have_intervals_or_say_that_there_is_nothing() -> None:
    one, ten = load_rows(LOAD)
    assert dict(zip(HEAD, one, strict=True)) == {
        "users": "1", "at once": "0.9", "answered": "5 of 5", "answers/s": "10.0",
        "p50 ms": "-", "p90 ms": "-", "p95 ms": "-", "p99 ms": "-",
    }  # fmt: skip
    assert ten[:4] == ("10", "-", "38 of 40", "-")
    assert ten[4:6] == ("120 [100.0, no answer]", "no answer [130, no answer]")


def test_lines_tell_counts_intervals_and_what_is_missing() -> None:
    lines = "\n".join(load_lines(LOAD))
    assert "10 users: own-name held in 20 of 40 runs [0.352, 0.648], worse than chance explains" in lines
    assert "too few runs at every level for p95 (needs 72), p99 (needs 368)" in lines
    assert "10 users: up to 30 ms of a latency may be flakestorm's own work" in lines
    assert "1 run could not be made from here" in lines
    assert "closed loop" in lines


@pytest.mark.parametrize("form", [terminal.text, markdown.markdown, html.render])
def test_every_form_shows_the_levels(form) -> None:
    shown = form(replace(sample(), command="load", load=LOAD))
    assert "120 [100.0, no answer]" in shown
    assert "own-name held in 20 of 40 runs" in shown.replace("&#45;", "-").replace("\n", " ")


def test_the_document_is_read_back() -> None:
    report = replace(sample(), command="load", load=LOAD)
    found = document.from_document(document.to_document(report))
    assert found.load == LOAD
    assert document.from_document({**document.to_document(report), "command": "other"}).load is None


def test_what_an_id_says_is_no_markup() -> None:
    hostile = replace(LEVELS[1], promises=(replace(BROKEN, invariant=HOSTILE),))
    shown = html.render(replace(sample(), command="load", load=replace(LOAD, levels=(hostile,))))
    assert "<script>window.pwned" not in shown
    assert "<script>" not in markdown.markdown(replace(sample(), load=replace(LOAD, levels=(hostile,))))


def test_an_open_loop_says_that_it_is_one() -> None:
    levels = tuple(replace(level, rate=rate) for level, rate in zip(LEVELS, (0.5, 20.0), strict=True))
    found = replace(LOAD, levels=levels, knee=20.0)
    assert [row[0] for row in load_rows(found)] == ["0.5/s", "20/s"]
    lines = "\n".join(load_lines(found))
    assert "open loop: users come at this rate" in lines
    assert "closed loop" not in lines
    report = replace(sample(), command="load", load=found)
    assert document.from_document(document.to_document(report)).load == found


@pytest.mark.parametrize("form", [terminal.text, markdown.markdown, html.render])
def test_every_form_shows_what_became_of_limits(form) -> None:
    levels = (LEVELS[0], replace(LEVELS[1], limits=LIMITS))
    shown = form(replace(sample(), command="load", load=replace(LOAD, levels=levels)))
    shown = unescape(shown).replace("\n", " ")
    assert "10 users: p50 within 200 ms did not hold: 250 ms [210 ms, 300 ms] in 40 runs" in shown
    assert "10 users: p95 within 900 ms could not be judged: few" in shown


def test_a_limit_is_a_test_case_of_its_level() -> None:
    base = sample()
    levels = (replace(LEVELS[0], scenario=base.scenarios[0].name, limits=LIMITS), LEVELS[1])
    xml = ET.fromstring(junit.junit(replace(base, load=replace(LOAD, levels=levels))))
    suite = next(s for s in xml.iter("testsuite") if s.get("name") == base.scenarios[0].name)
    cases = {case.get("name"): [found.tag for found in case] for case in suite}
    assert cases["p50 within 200 ms"] == ["failure"]
    assert cases["p95 within 900 ms"] == ["error"]


def test_a_ci_has_levels_too() -> None:
    report = replace(sample(), command="ci", load=LOAD)
    assert document.from_document(document.to_document(report)).load == LOAD
