from dataclasses import replace
from html.parser import HTMLParser

from flakestorm.engine.events import PhaseResult, Score
from flakestorm.reports.summary import render, write_summary
from flakestorm.reports.trend import Point
from report_samples import HOSTILE, hostile, sample


def ci(base=None, **more):
    report = base or sample()
    phases = (
        PhaseResult("chaos", "done", "pass", "all kept", 0.35, Score(0.9, 0.8, 0.95, 9, 10, 0), page="/r/chaos.html"),
        PhaseResult(
            "contract", "done", "fail", report.headline, 0.35, report.scores.get("contract"), page=f"x/{HOSTILE}"
        ),
        PhaseResult("replay", "not run", "inconclusive", "interrupted before", 0.1),
    )
    scores = {**report.scores, "overall": Score(0.8, 0.7, 0.9, 22, 29, 7)}
    return replace(report, command="ci", scores=scores, phases=phases, **more)


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.said = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href"]
        self.ids += [value for name, value in attrs if name == "data-testid"]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data) -> None:
        self.said += data


def seen(report, **how) -> Seen:
    found = Seen()
    found.feed(render(report, **how))
    return found


HISTORY = [Point(f"2026-01-0{n}", "pass", {"overall": 0.5 + n / 10, "chaos": 0.4}) for n in range(1, 4)]


def test_it_tells_verdict_overall_and_every_phase() -> None:
    page = seen(ci(), history=HISTORY)
    for words in ("Fail", "0.800", "0.700 to 0.900", "chaos", "0.900", "contract", "71.43", "not run"):
        assert words in page.said
    assert page.ids.count("phase") == 3
    assert page.ids.count("trend") == 2
    assert page.ids.count("point") == 3


def test_each_phase_leads_to_its_own_report(tmp_path) -> None:
    report = ci()
    report = replace(report, phases=(replace(report.phases[0], page=str(tmp_path / "out" / "chaos.html")),))
    path = write_summary(report, tmp_path / "out" / "report.html")
    found = Seen()
    found.feed(path.read_text())
    assert found.links == ["data:,", "./chaos.html"]


def test_hostile_text_is_text_and_leads_nowhere() -> None:
    history = [Point(HOSTILE, HOSTILE, {"overall": 0.5, HOSTILE: 0.1}), HISTORY[0]]
    page = seen(ci(hostile()), history=history)
    assert not {"script", "img"} & set(page.tags)
    assert "window.pwned=1" in page.said
    assert page.links[1].startswith("file:///r/")
    assert page.links[2].startswith("./x/%3C/script%3E")


def test_a_script_for_an_address_is_a_file_name() -> None:
    report = replace(ci(), phases=(replace(ci().phases[0], page="javascript:alert(1)"),))
    assert seen(report).links[1] == "./javascript%3Aalert%281%29"


def test_without_history_there_is_no_trend() -> None:
    assert "trend" not in seen(ci()).ids
    assert "trend" not in seen(ci(), history=HISTORY[:1]).ids
