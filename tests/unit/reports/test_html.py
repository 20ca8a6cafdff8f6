from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from flakestorm.engine.events import Report, RunResult
from flakestorm.reports.html import render, write_html
from flakestorm.reports.text import encodable
from report_samples import HOSTILE, empty, exchanges, hostile, large, sample


class Page(HTMLParser):
    """The elements of a page, with their attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag in ("style", "script"):
            self.texts.setdefault(tag, []).append("")

    def handle_data(self, data: str) -> None:
        if self._open in ("style", "script") and self.texts[self._open]:
            self.texts[self._open][-1] += data
        else:
            self.texts.setdefault("", []).append(data)

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts[""]).split())

    @property
    def data(self) -> Any:
        return json.loads(self.texts["script"][0])

    def cells(self) -> dict[tuple[str, str], dict[str, str | None]]:
        return {
            (str(b["data-scenario"]), str(b["data-invariant"])): b
            for b in self.all("button")
            if b.get("data-testid") == "cell"
        }


def page(report: Report, **options: Any) -> Page:
    return Page(render(report, **options))


def test_every_square_is_a_button_that_says_what_it_shows() -> None:
    cells = page(sample()).cells()
    assert len(cells) == 16
    label = cells["booking-times-out", "no-false-booking"]["aria-label"]
    assert (
        label
        == "booking-times-out, no-false-booking: failed, 0 of 2 passed (95% interval 0.000 to 0.658), critical · ✕ 0/2"
    )
    label = cells["booking-times-out", "always-answers"]["aria-label"]
    assert label == (
        "booking-times-out, always-answers: passed, 1 of 1 passed (95% interval 0.207 to 1.000), 1 inconclusive, high "
        "· ✓ 1/1 +1?"
    )
    assert "does not apply" in str(cells["no-chaos", "no-false-booking"]["aria-label"])
    assert "inconclusive" in str(cells["model-cut-short", "fast"]["aria-label"])


def test_the_verdict_the_scores_and_the_evidence_can_be_read_without_a_script() -> None:
    text = page(sample()).text
    for piece in (
        "no-false-booking (critical) failed in booking-times-out: 2 of 2 runs claimed a booking.",
        "71.43 of 100",
        "95% interval 55.10 to 83.20",
        "13 of 19 passed · 7 inconclusive · a critical invariant failed",
        "model-cut-short: no planned fault fired in 2 of 2 runs.",
        'found (?i)is booked in "Your flight NW-118 to Oslo is booked."',
        "flakestorm run --seed 42 --prompt 0 --inject tool/book_flight#1=timeout:300",
        "The same prompt also fails without chaos",
    ):
        assert piece in text, piece


def test_a_report_of_nothing_is_a_page() -> None:
    shown = page(empty())
    assert "The agent could not be reached." in shown.text
    assert shown.cells() == {}


def test_a_score_without_data_shows_no_number() -> None:
    report = sample()
    none = replace(report.scores["contract"], value=None, low=None, high=None)
    text = page(replace(report, scores={"robustness": none})).text
    assert "no data" in text
    assert "95% interval" not in text.split("no data")[1][:120]


def test_the_policy_allows_exactly_the_pages_own_script_and_style() -> None:
    shown = page(sample(), exchanges=lambda _: exchanges())
    policy = next(m["content"] for m in shown.all("meta") if m.get("http-equiv") == "Content-Security-Policy")

    def digest(text: str) -> str:
        return "'sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert digest(shown.texts["style"][0]) in policy
    assert digest(shown.texts["script"][1]) in policy
    assert [s.get("type") for s in shown.all("script")] == ["application/json", "module"]


def test_nothing_is_loaded_from_anywhere() -> None:
    shown = page(sample(), exchanges=lambda _: exchanges())
    links = [v for _, a in shown.elements for k, v in a.items() if k in ("src", "href", "action", "srcset", "poster")]
    assert links
    assert all(link == "data:," or str(link).startswith("#cell=") for link in links)
    assert not [a for _, a in shown.elements if any(k.startswith("on") or k == "style" for k in a)]
    assert not re.search(r"@import|url\(", shown.texts["style"][0])


def test_hostile_text_adds_no_element_and_ends_no_script() -> None:
    kind, evil = (
        page(sample(), exchanges=lambda _: exchanges()),
        page(hostile(), exchanges=lambda _: exchanges(HOSTILE, HOSTILE)),
    )
    assert {tag for tag, _ in evil.elements} <= {tag for tag, _ in kind.elements} | {"details"}
    assert len(evil.all("script")) == 2
    assert evil.texts["script"][1] == kind.texts["script"][1]
    assert not evil.all("img")
    assert "{{7*7}}${7*7}" in evil.text  # not computed
    assert "\x1b" not in evil.text


def test_the_data_holds_every_string_as_it_was_shown_to_be() -> None:
    data = page(hostile()).data
    assert data["scenarios"][0]["name"] == encodable(f"no-chaos {HOSTILE}")
    assert "\x1b" not in data["runs"][0]["output"]
    assert "\\x1b[31mRED" in data["runs"][0]["output"]
    assert "\\u202e" in data["runs"][0]["reproduce"]


def test_data_refers_to_runs_by_place() -> None:
    data = page(sample(), exchanges=lambda _: exchanges()).data
    failing = [c for c in data["cells"] if c[4] == "fail" and data["invariants"][c[1]]["id"] == "no-false-booking"]
    assert [data["runs"][c[6]]["id"] for c in failing] == ["r-0005", "r-0006"]
    assert data["runs"][4]["timeline"]["exchanges"][1]["faults"] == [["timeout", "no reply in 300 ms"]]


def test_a_cell_without_its_run_is_still_shown() -> None:
    report = replace(sample(), runs=())
    data = page(report).data
    assert {cell[6] for cell in data["cells"]} == {-1}


def test_a_tape_that_cannot_be_read_costs_only_its_timeline() -> None:
    def broken(run: RunResult) -> list[dict[str, Any]]:
        if run.id == "r-0001":
            raise ValueError("line 3: \x1b edited")
        return exchanges()

    runs = page(sample(), exchanges=broken).data["runs"]
    assert runs[0]["timeline"] == {"exchanges": [], "left_out": "the tape cannot be shown: line 3: \\x1b edited"}
    assert len(runs[1]["timeline"]["exchanges"]) == 3


def test_a_long_tape_is_cut_and_says_so() -> None:
    runs = page(sample(), exchanges=lambda _: exchanges() * 50).data["runs"]
    assert len(runs[0]["timeline"]["exchanges"]) == 100
    assert runs[0]["timeline"]["left_out"] == "50 more on the tape"


def test_when_the_page_is_full_the_worst_runs_keep_their_timelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flakestorm.reports.html.TIMELINES_BYTES", 6_000)
    runs = page(sample(), exchanges=lambda _: exchanges()).data["runs"]
    kept = [run["id"] for run in runs if run["timeline"]["exchanges"]]
    assert "r-0005" in kept  # the critical failure
    assert len(kept) < len(runs)
    assert "this page is full" in runs[0]["timeline"]["left_out"]


def test_without_tapes_there_are_no_timelines() -> None:
    assert page(sample()).data["timelines"] is False


def test_size_without_data_and_with_much_of_it() -> None:
    assert len(render(empty()).encode()) < 60_000
    assert len(render(large(100, 50)).encode()) < 2_000_000


def test_written_tapes_are_named_from_the_pages_folder(tmp_path: Path) -> None:
    run = replace(sample().runs[0], tape=str(tmp_path / "tapes" / "r-0001.tape"))
    path = write_html(replace(sample(), runs=(run,)), tmp_path / "report.html")
    shown = Page(path.read_text(encoding="utf-8"))
    assert shown.data["runs"][0]["tape"] == "tapes/r-0001.tape"


def test_integers_of_any_size_are_shown() -> None:
    run = replace(sample().runs[0], planned=2**70)
    assert page(replace(sample(), runs=(run,), seed=2**80)).data["runs"][0]["planned"] == 2**70
