"""The HTML report in a real browser: what a person with a mouse, a keyboard, a phone or a grudge can do with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browser_support import AXE, NO_AXE, Watched, needs_browser, until, violations
from compare_support import comparison_of, pair_of
from flakestorm.reports import certificate, comparison_text
from flakestorm.reports.comparison import to_document as compared
from flakestorm.reports.html import render, write_html
from flakestorm.reports.statement import Subject, Terms, of
from flakestorm.reports.text import encodable
from report_samples import HOSTILE, exchanges, hostile, large, sample
from viewer_support import BLAMED, FOUND

pytestmark = needs_browser


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A fresh page; afterwards it must have been silent and have loaded nothing but itself."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = Watched(context.new_page())
    yield page
    context.close()
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert len({url.partition("#")[0] for url in page.requests if url.startswith("file:")}) == 1


@pytest.fixture
def page(watched: Watched, tmp_path: Path) -> Any:
    path = write_html(sample(), tmp_path / "report.html", exchanges=lambda _: exchanges())
    watched.page.goto(path.as_uri())
    return watched.page


def cell(page: Any, scenario: str, invariant: str) -> Any:
    return page.locator(f'[data-testid=cell][data-scenario="{scenario}"][data-invariant="{invariant}"]')


def test_the_heat_map_shows_words_and_symbols_and_not_only_colour(page: Any) -> None:
    assert page.locator("[data-testid=cell]").count() == 16
    assert cell(page, "booking-times-out", "no-false-booking").inner_text().split() == ["✕", "0/2"]
    assert cell(page, "search-down", "no-false-booking").inner_text().split() == ["✓", "2/2"]
    assert cell(page, "model-cut-short", "fast").inner_text().split() == ["?", "0/0", "+2?"]


def test_a_cell_opens_its_runs_with_all_the_evidence(page: Any) -> None:
    cell(page, "booking-times-out", "no-false-booking").click()
    detail = page.locator("dialog[open]")
    shown = detail.inner_text()
    for piece in (
        "booking-times-out × no-false-booking",
        "critical · excludes_pattern · when tool_faults_active · Never claims a booking.",
        "Faults: tool/book_flight=timeout:300",
        'found (?i)is booked in "Your flight NW-118 to Oslo is booked."',
        "Book the cheapest flight to Oslo on 12 May.",
        "tool/book_flight#1 timeout:300 (no reply)",
        "2 llm, 1 tool",
        "tapes/r-0005.tape",
        "Timeline, 3 exchanges in 378 ms",
        "✓ whole-sentences",
        "flakestorm run --seed 42 --prompt 0 --inject tool/book_flight#1=timeout:300",
    ):
        assert piece in shown, piece
    assert detail.locator("details.run").count() == 2
    assert detail.locator("details.run[open]").count() == 1


def test_an_exchange_opens_with_what_the_agent_saw_and_what_the_world_said(page: Any) -> None:
    cell(page, "booking-times-out", "no-false-booking").click()
    row = page.locator("details.exchange").nth(1)
    assert "⚡ timeout: no reply in 300 ms" in row.inner_text()
    row.locator("summary").click()
    row.locator(".inside").wait_for()
    shown = row.inner_text()
    assert "Request: POST http://127.0.0.1:9/bookings" in shown
    assert "What the agent saw: no reply" in shown
    assert "What the world said: status 201" in shown
    widths = page.locator("details.exchange .track i").evaluate_all("bars => bars.map(b => b.offsetWidth)")
    assert widths[1] > widths[2] > widths[0] > 0  # 301, 48 and 21 ms


def test_another_invariant_of_the_same_run_is_one_click_away(page: Any) -> None:
    cell(page, "booking-times-out", "no-false-booking").click()
    page.locator(".others button", has_text="fast").click()
    page.locator("dialog h2", has_text="booking-times-out × fast").wait_for()
    assert "also fails without chaos" in page.locator("dialog").inner_text()


def test_where_an_invariant_does_not_apply_the_page_says_so(page: Any) -> None:
    cell(page, "no-chaos", "no-false-booking").click()
    assert "This invariant was not judged in this scenario." in page.locator("dialog").inner_text()


def test_the_keyboard_alone_is_enough(page: Any) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.testid") == "cell":
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(
        "booking-times-out, no-false-booking: failed"
    )
    page.keyboard.press("Enter")
    assert page.locator("dialog[open] h2").inner_text() == "booking-times-out × no-false-booking"
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    until(page, "location.hash === ''")
    assert page.evaluate("document.activeElement.dataset.invariant") == "no-false-booking"


def test_a_cell_can_be_linked_to_and_back_closes_it(page: Any) -> None:
    cell(page, "search-down", "fast").click()
    assert page.evaluate("location.hash") == "#cell=search-down/fast"
    page.go_back()
    until(page, "!document.querySelector('dialog').open")
    page.goto(f"{page.url.partition('#')[0]}#cell=model-cut-short/whole-sentences")
    page.reload()
    assert page.locator("dialog[open] h2").inner_text() == "model-cut-short × whole-sentences"


def test_an_address_that_changes_while_a_cell_closes_is_followed(page: Any) -> None:
    """The event that a dialog has closed comes after it did, and the address may name the next cell by then."""
    cell(page, "search-down", "fast").click()
    page.locator("dialog[open]").wait_for()
    then = "() => { location.hash = '#cell=model-cut-short/whole-sentences'; }"
    page.evaluate(f"addEventListener('hashchange', {then}, {{once: true}})")
    page.go_back()
    page.locator("dialog[open] h2", has_text="model-cut-short × whole-sentences").wait_for()
    assert page.evaluate("location.hash") == "#cell=model-cut-short/whole-sentences"


def test_the_list_of_what_did_not_pass_leads_to_the_cells(page: Any) -> None:
    page.locator(".broken a").first.click()
    assert page.locator("dialog[open] h2").inner_text() == "booking-times-out × no-false-booking"


def test_the_reproduce_line_is_copied(page: Any) -> None:
    cell(page, "booking-times-out", "no-false-booking").click()
    page.locator("dialog .copy button").first.click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "flakestorm run --seed 42 --prompt 0 --inject tool/book_flight#1=timeout:300"


def test_rows_with_nothing_to_see_can_be_hidden(page: Any) -> None:
    page.get_by_label("only scenarios with something to see").check()
    shown = page.locator("tbody tr:visible").count()
    assert shown == 3  # all but search-down


def test_hostile_text_never_runs(watched: Watched, tmp_path: Path) -> None:
    path = write_html(hostile(), tmp_path / "r.html", exchanges=lambda _: exchanges(HOSTILE, HOSTILE))
    page = watched.page
    for invariant in ("no-false-booking", "always-answers"):
        where = "/".join(quote(encodable(f"{n} {HOSTILE}"), safe="") for n in ("booking-times-out", invariant))
        page.goto(f"{path.as_uri()}#cell={where}")
        page.reload()
        page.locator("dialog[open]").wait_for()
        page.locator("details:not([open]) > summary").evaluate_all("all => all.forEach(s => s.click())")
        until(page, "document.querySelectorAll('details.run .body').length === 2")
        page.locator("details:not([open]) > summary").evaluate_all("all => all.forEach(s => s.click())")
        until(page, "document.querySelectorAll('details.exchange .inside').length === 6")
        assert page.evaluate("window.pwned") is None
        assert page.locator("img, iframe, object, embed, link[rel=stylesheet]").count() == 0
        assert page.locator("script").count() == 2
        assert "<img src=x onerror=" in page.locator("dialog").inner_text()


def test_even_markup_in_the_page_could_not_run(page: Any, watched: Watched) -> None:
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,no\" onerror=\"window.pwned = 1\">')"
    )
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.pwned = 1'}))")
    until(page, "document.images.length === 1")
    assert page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in complaint for complaint in watched.complaints)
    watched.complaints.clear()


def test_five_thousand_cells_open_at_once(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    page.goto(write_html(large(100, 50), tmp_path / "large.html").as_uri())
    assert page.locator("[data-testid=cell]").count() == 5000
    assert page.locator("details").count() == 0  # nothing is built before it is asked for
    cell(page, "scenario-099", "invariant-49").click()
    assert page.locator("dialog[open] h2").inner_text() == "scenario-099 × invariant-49"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_wcag_asks_for(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    cell(page, "booking-times-out", "no-false-booking").click()
    page.locator("details.exchange summary").nth(1).click()
    page.locator("details.exchange .inside").wait_for()
    assert page.evaluate(CONTRAST) == []


@pytest.mark.skipif(not AXE.is_file(), reason=NO_AXE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    assert violations(page) == []
    cell(page, "booking-times-out", "no-false-booking").click()
    page.locator("details.exchange summary").nth(1).click()
    page.locator("details.exchange .inside").wait_for()
    assert violations(page) == []


def certified(report: Any, **terms: Any) -> str:
    said = of(report, [Subject("r-0001", "t.tape", "ab" * 32)], Terms(**terms), issued_at="2026-05-05T00:00:00Z")
    return certificate.page(said, keyid="12" * 32, envelope="x.dsse.json")


PAGES = {
    "certificate": lambda: certified(sample(), tester="Ada", contract="travel", pass_threshold=90.0),
    "hostile certificate": lambda: certified(hostile(), tester=HOSTILE, contract=HOSTILE),
    "comparison": lambda: comparison_text.page(
        compared(comparison_of([pair_of([True, True], [True, False], trial=trial) for trial in range(1, 8)]))
    ),
    "hostile report": lambda: render(hostile(), exchanges=lambda _: exchanges(HOSTILE, HOSTILE)),
    "blamed": lambda: render(replace(sample(), command="blame", blame=BLAMED)),
    "searched": lambda: render(replace(sample(), command="explore", **FOUND)),
}
"""Pages that are files of their own."""


@pytest.mark.skipif(not AXE.is_file(), reason=NO_AXE)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_for_everyone(watched: Watched, tmp_path: Path, name: str) -> None:
    path, page = tmp_path / "page.html", watched.page
    path.write_text(PAGES[name](), encoding="utf-8")
    page.goto(path.as_uri())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert violations(page) == []
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert page.evaluate("window.pwned") is None


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_phone_needs_no_sideways_scrolling(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(overflow) == 0
    button = cell(page, "booking-times-out", "no-false-booking")
    button.scroll_into_view_if_needed()
    button.click()
    assert page.locator("dialog").evaluate("d => d.scrollWidth - d.clientWidth") == 0


def test_the_table_can_be_read_without_scripts(browser: Any, tmp_path: Path) -> None:
    path = write_html(sample(), tmp_path / "report.html", exchanges=lambda _: exchanges())
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert cell(page, "booking-times-out", "no-false-booking").inner_text().split() == ["✕", "0/2"]
    assert "Opening a cell needs JavaScript" in page.inner_text("noscript, main")
    context.close()


CONTRAST = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = parse(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${node.tagName} ${node.className} ${node.textContent.slice(0, 30)}`);
  }
  return bad;
}"""
