from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from flakestorm.engine.events import PhaseResult, Score
from flakestorm.reports.markdown import LISTED, markdown
from report_samples import HOSTILE, empty, hostile, large, sample

OURS = {"h2", "p", "table", "thead", "tbody", "tr", "th", "td", "strong", "blockquote", "pre", "code", "br"}


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.said = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data) -> None:
        self.said += data


def rendered(report) -> Seen:
    seen = Seen()
    seen.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown(report)))
    return seen


@pytest.mark.parametrize("make", [sample, hostile, empty])
def test_nothing_an_agent_said_is_markup(make) -> None:
    seen = rendered(make())
    assert seen.tags <= OURS
    assert seen.attributes <= {"style", "class"}


@settings(max_examples=25, deadline=None)
@given(st.text(st.sampled_from("`*_[]()<>!|#~&;:/.-+=\\\n\t @a1"), max_size=40))
def test_no_text_breaks_out(text) -> None:
    base = sample()
    report = replace(
        base,
        headline=text,
        notes=(text,),
        cells=tuple(replace(c, reason=text) for c in base.cells),
        runs=tuple(replace(r, input=text, output=text, error=None, reproduce=f"flakestorm {text}") for r in base.runs),
    )
    seen = rendered(report)
    assert seen.tags <= OURS
    assert seen.said.count("× whole-sentences") == rendered(base).said.count("× whole-sentences")


def test_it_says_verdict_scores_map_and_what_broke() -> None:
    said = rendered(sample()).said
    for words in ("❌ Fail: flakestorm contract run", "71.43", "55.10 to 83.20", "❌ 0/2", "⚠️ 1/2", "❔ 0/0 +2?",
                  "booking-times-out × no-false-booking", "flakestorm run --seed 42"):  # fmt: skip
        assert words in said


def test_hostile_text_is_still_readable() -> None:
    assert "window.pwned=1" in rendered(hostile()).said
    assert HOSTILE not in markdown(hostile())


def test_a_large_report_stays_small_enough_for_a_summary_page() -> None:
    text = markdown(large())
    assert len(text.encode()) < 200_000
    assert "The map of 100 x 50 is in the HTML report" in text
    assert f"and {len({(c.scenario, c.invariant) for c in large().cells if c.verdict == 'fail'}) - LISTED} more" in (
        rendered(large()).said
    )


def test_phases_are_told() -> None:
    phases = (
        PhaseResult("contract", "done", "pass", "all kept", 0.35),
        PhaseResult("replay", "not run", "inconclusive", "interrupted before", 0.1),
    )
    said = rendered(replace(sample(), phases=phases)).said
    assert "✅ Pass" in said
    assert "not run" in said


def test_nothing_that_failed_is_shown_as_full_marks() -> None:
    scores = {"robustness": Score(0.9999, 0.999, 1.0, 19_999, 20_000, 0), "chaos": Score(1.0, 0.9, 1.0, 30, 30, 0)}
    report = replace(sample(), scores=scores)
    said = [line for line in markdown(report).splitlines() if line.lstrip("| ").startswith(("robustness", "chaos"))]
    assert ["0.999" in said[0], "1.000" in said[1]] == [True, True]
    assert "1.000" not in said[0].replace("0.999 to 1.000", "").replace("0.999, 1.000", "")
