import re
from dataclasses import replace

from flakestorm.engine.events import Score
from flakestorm.reports.certificate import facts, page, rate, score_line, threshold_line
from flakestorm.reports.statement import Subject, Terms, of
from report_samples import HOSTILE, empty, hostile, sample


def statement(report, **terms):
    return of(report, [Subject("r-0001", "t.tape", "ab" * 32)], Terms(**terms), issued_at="2026-05-05T00:00:00Z")


def test_the_page_shows_tester_contract_scores_and_threshold() -> None:
    said = statement(sample(), tester="Ada & Co", contract="travel", pass_threshold=90.0)
    html = page(said, keyid="12" * 32, envelope="x.dsse.json")
    for words in ("Ada &amp; Co", "travel", "71.43 of 100, 95% interval 55.10 to 83.20; 13 of 19 passed",
                  "not met: the least that is accepted is 90 of 100", "12" * 32, "ab" * 32, "no-false-booking",
                  "0 of 2 passed (95% interval 0% to 66%)"):  # fmt: skip
        assert words in html, words
    assert 'data-verdict="fail"' in html
    assert "<script" not in html


def test_nothing_an_agent_or_tester_said_becomes_markup() -> None:
    html = page(statement(hostile(), tester=HOSTILE, contract=HOSTILE), keyid="k", envelope="e")
    html.encode()
    assert "<img" not in html
    assert "<script" not in html
    assert not re.search("[\x1b\u202e\x00]", html)


def test_without_data_there_is_no_number() -> None:
    html = page(statement(empty(), pass_threshold=1.0), keyid="k", envelope="e")
    assert "no data" in html
    assert "cannot be judged" in html
    assert "nobody is named" in html


def test_lines() -> None:
    report = replace(sample(), interrupted=True, scores={"chaos": Score(None, None, None, 0, 0, 3)})
    p = statement(report)["predicate"]
    assert score_line("chaos", p["scores"]["chaos"], None) == "no data; 3 inconclusive"
    assert ("Cut short", "the command was interrupted") in facts(p)
    assert threshold_line(None) == ""
    held = {"least": 50.0, "score": "contract", "value": 71.43, "outcome": "pass"}
    assert threshold_line(held) == "met: the least that is accepted is 50 of 100, and the contract score is 71.43"
    square = {"passed": 0, "conclusive": 0, "inconclusive": 2, "low": None, "high": None}
    assert rate(square) == "none of 2 runs was conclusive"


def test_a_score_that_missed_the_threshold_does_not_look_like_it() -> None:
    report = replace(sample(), scores={"chaos": Score(0.9496, 0.9, 0.98, 94, 99, 0)})
    p = statement(report, pass_threshold=95.0)["predicate"]
    assert score_line("chaos", p["scores"]["chaos"], p["threshold"]).startswith("0.9496 of 1, 95% interval 0.900 to")
    assert score_line("chaos", p["scores"]["chaos"], None).startswith("0.950 of 1")
    assert "0.9496" in page(statement(report, pass_threshold=95.0), keyid="12" * 32, envelope="x.dsse.json")
