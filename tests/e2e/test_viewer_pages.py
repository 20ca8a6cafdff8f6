"""The viewer in a real browser: every page and action, by mouse and by keyboard, on a phone, and under attack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browser_support import AXE, NO_AXE, Watched, needs_browser, until, violations
from flakestorm.reports.document import to_document
from flakestorm.store.sqlite import Store
from report_samples import sample
from viewer_support import Stores, Viewer, stores, viewing

pytestmark = needs_browser


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return stores(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def viewer(store: Stores) -> Iterator[Viewer]:
    with viewing(store.folder.parent) as serving:
        yield serving


@pytest.fixture
def watched(browser: Any, viewer: Viewer) -> Iterator[Watched]:
    """A page that was let in; afterwards it must have been silent and have asked nobody but the viewer."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = Watched(context.new_page())
    page.page.goto(viewer.address)
    page.page.locator(".report-line").first.wait_for()
    yield page
    context.close()
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith((f"{viewer.root}/", "data:"))] == []


@pytest.fixture
def page(watched: Watched) -> Any:
    return watched.page


def cell(page: Any, scenario: str, invariant: str) -> Any:
    return page.locator(f'[data-testid=cell][data-scenario="{scenario}"][data-invariant="{invariant}"]')


def addresses(store: Stores) -> dict[str, str]:
    """Every page, and every panel."""
    report, run = f"/report?id={store.plain}", f"/run?report={store.plain}&run=r-0001"
    return {
        "home": "/",
        "report": report,
        "cell": f"{report}&scenario=booking-times-out&invariant=no-false-booking",
        "run": run,
        "exchange": f"{run}&exchange=1",
        "stream": f"{run}&exchange=0",
        "fork": f"{run}&exchange=0&fork=1",
        "shrink": f"/run?report={store.plain}&run=r-0005&shrink=1",
        "work": "/work",
        "tapes": "/tapes",
        "tape": "/tape?path=tapes/loose.tape",
        "diff": f"/diff?left={store.earlier}/r-0001&right={store.plain}/r-0002",
        "pair": f"/diff?left={store.earlier}/r-0001&right={store.plain}/r-0002&pair=0",
        "found": f"/report?id={store.found}",
        "blame": f"/report?id={store.blame}",
        "unfinished": f"/report?id={store.unfinished}",
    }


def settled(page: Any) -> None:
    until(page, "!document.querySelector('main').hasAttribute('aria-busy')")


def test_from_the_list_to_the_bytes_and_back(page: Any, viewer: Viewer, store: Stores) -> None:
    assert page.url == f"{viewer.root}/"  # the token does not stay in the address
    page.locator(".trend circle.point").first.wait_for()
    page.locator(f'a[href="/report?id={store.plain}"].report-line').click()
    assert page.locator("[data-testid=verdict] h1").inner_text().split() == ["✕", "Failed"]
    assert page.locator("[data-testid=cell]").count() == 16
    assert cell(page, "booking-times-out", "no-false-booking").inner_text().split() == ["✕", "0/2"]
    cell(page, "no-chaos", "fast").click()
    assert page.locator("dialog[open] h2").inner_text() == "no-chaos × fast"
    assert page.locator("dialog .cell-runs li").count() == 2
    page.locator("dialog .run-line", has_text="prompt 0").click()
    page.locator(".exchange-line").nth(2).wait_for()
    assert "Your flight NW-118 to Oslo is booked." in page.locator(".in-out").inner_text()
    assert "⚡ error" in page.locator(".exchange-line").nth(1).inner_text()
    page.locator(".exchange-line").first.click()
    panel = page.locator("dialog[open]")
    panel.locator(".piece").first.wait_for()
    shown = panel.inner_text()
    for piece in (
        "llm/gpt-4o#1",
        "Be brief.",
        "Oslo is cold.",
        "tool call search",
        "finish tool_calls",
        "5 chunks over",
    ):
        assert piece in shown, piece
    panel.get_by_role("button", name="Next").click()
    page.locator("dialog h2", has_text="tool/search#1").wait_for()
    assert "What the agent saw" in panel.inner_text()
    page.go_back()
    page.locator("dialog h2", has_text="llm/gpt-4o#1").wait_for()
    page.go_back()
    until(page, "!document.querySelector('dialog').open")
    page.go_back()
    page.locator("dialog h2", has_text="no-chaos × fast").wait_for()


def test_the_keyboard_alone_is_enough(page: Any, viewer: Viewer, store: Stores) -> None:
    page.goto(f"{viewer.root}/report?id={store.plain}")
    cell(page, "no-chaos", "always-answers").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.locator("dialog[open] h2", has_text="booking-times-out × no-false-booking").wait_for()
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("Escape")
    until(page, "!location.search.includes('invariant')")
    assert page.evaluate("document.activeElement.dataset.invariant") == "no-false-booking"
    page.locator(".run-line").first.focus()
    page.keyboard.press("End")
    until(page, "document.activeElement.textContent.includes('r-0008')")
    page.keyboard.press("Enter")
    until(page, "location.pathname === '/run'")


def test_five_thousand_exchanges_are_a_list_like_any_other(page: Any, viewer: Viewer, store: Stores) -> None:
    page.goto(f"{viewer.root}/run?report={store.long}&run=r-0001")
    page.locator(".exchange-line").first.wait_for()
    assert "5,000 exchanges" in page.locator("main").inner_text()
    assert page.locator(".exchange-line").count() < 60
    page.locator(".exchange-line").first.focus()
    page.keyboard.press("End")
    page.locator(".exchange-line", has_text="tool/search#2500").click()
    page.locator("dialog h2", has_text="tool/search#2500").wait_for()
    assert page.locator(".exchange-line").count() < 80
    page.goto(f"{viewer.root}/run?report={store.long}&run=r-0001&exchange=2400")  # and it can be linked to
    page.locator("dialog h2", has_text="llm/gpt-4o#1201").wait_for()


def test_ten_thousand_runs_are_a_list_like_any_other(page: Any, viewer: Viewer, store: Stores) -> None:
    page.goto(f"{viewer.root}/report?id={store.many}")
    page.locator(".run-line").first.wait_for()
    assert page.locator(".run-line").count() < 60
    page.get_by_label("Runs to list").select_option("fail")
    page.locator("#status", has_text="2,900 runs").wait_for(state="attached")
    page.locator(".run-line").first.wait_for()
    assert "fail" in page.locator(".run-line").first.inner_text()


def test_two_runs_side_by_side(page: Any, viewer: Viewer, store: Stores) -> None:
    page.goto(f"{viewer.root}/run?report={store.earlier}&run=r-0001")
    page.get_by_role("button", name="Compare with another run").click()
    page.goto(f"{viewer.root}/run?report={store.plain}&run=r-0002")
    page.get_by_role("link", name="Compare with").click()
    page.locator(".pair-line").first.wait_for()
    words = [line.splitlines()[0] for line in page.locator(".pair-line").all_inner_texts()]
    assert words == ["both differ", "same", "both differ", "only right"]
    page.get_by_label("only those that differ").check()
    until(page, "document.querySelectorAll('.pair-line').length === 3")
    page.get_by_role("button", name="First difference").click()
    page.locator("dialog .differences").first.wait_for()
    assert 'messages[1].text: "Oslo is nice." -> "Oslo is cold."' in page.locator("dialog").inner_text()


def test_what_other_commands_found_out_is_shown(page: Any, viewer: Viewer, store: Stores) -> None:
    page.goto(f"{viewer.root}/report?id={store.blame}")
    page.locator("svg.curve .band").wait_for(state="attached")
    shown = page.locator("main").inner_text()
    for piece in ("Conclusion\nstep", "tool/search#1", "Continuations\n40"):
        assert piece in shown, piece
    page.goto(f"{viewer.root}/report?id={store.found}")
    page.locator("h2", has_text="Exploration").wait_for()
    shown = page.locator("main").inner_text()
    for piece in ("tool/search#1 error", "flakestorm run --prompt 0 --inject", "pairs\n12 of 14"):
        assert piece in shown, piece
    tried = page.locator(".tried")
    assert tried.locator("thead th").all_inner_texts() == ["Call", "error:503", "timeout:300"]
    tried.get_by_role("button", name="tool/book_flight#1 timeout:300: 2 of 2 runs broke a rule").click()
    until(page, "location.pathname === '/run' && location.search.includes('r-0005')")
    page.goto(f"{viewer.root}/report?id={store.unfinished}")
    assert "Not finished" in page.locator("[data-testid=verdict]").inner_text()


def test_a_command_under_way_is_followed(page: Any, viewer: Viewer, store: Stores) -> None:
    document = to_document(sample())
    with Store(store.folder, write=True) as db:
        id_ = db.begin({**document, "runs": [], "cells": []})
        page.goto(f"{viewer.root}/report?id={id_}")
        page.locator("[data-testid=verdict] h1", has_text="Not finished").wait_for()
        db.finish(id_, document)
    page.locator("[data-testid=verdict] h1", has_text="Failed").wait_for()
    assert page.locator("[data-testid=cell]").count() == 16


def test_hostile_text_never_runs(page: Any, viewer: Viewer, store: Stores) -> None:
    run = f"/run?report={store.hostile}&run=r-0001"
    diff = f"/diff?left={store.hostile}/r-0001&right={store.hostile}/r-0002"
    fork = f"/run?report={store.forked}&run=r-0001&exchange=1&fork=1"
    for path in (
        *(f"/report?id={store.hostile}", run, f"{run}&exchange=0", f"{run}&exchange=1", f"{diff}&pair=0", fork, "/"),
    ):
        page.goto(viewer.root + path)
        settled(page)
        page.locator("details:not([open]) > summary").evaluate_all("all => all.forEach(s => s.click())")
        assert page.evaluate("window.pwned") is None
        assert page.locator("img, iframe, object, embed, script:not([src])").count() == 0
        assert path == "/" or "<img src=x onerror=" in page.locator("body").inner_text()
    page.goto(f"{viewer.root}/report?id={store.hostile}")
    page.locator("[data-testid=cell]").nth(9).click()
    page.locator("dialog[open]").wait_for()
    assert page.evaluate("window.pwned") is None


def test_even_markup_in_the_page_could_not_run(page: Any, watched: Watched) -> None:
    page.evaluate("document.body.append(Object.assign(document.createElement('a'), {id: 'x'}))")
    with pytest.raises(Exception, match="TrustedHTML"):
        page.evaluate("document.getElementById('x').innerHTML = '<img src=data:, onerror=window.pwned=1>'")
    assert any("TrustedHTML" in complaint for complaint in watched.complaints)
    watched.complaints.clear()


@pytest.mark.parametrize("width", [320, 768])
def test_a_phone_needs_no_sideways_scrolling(page: Any, viewer: Viewer, store: Stores, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name, path in addresses(store).items():
        page.goto(viewer.root + path)
        settled(page)
        for where in ("document.documentElement", "document.getElementById('detail')"):
            assert page.evaluate(f"{where}.scrollWidth - {where}.clientWidth") == 0, name


@pytest.mark.skipif(not AXE.is_file(), reason=NO_AXE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing(page: Any, viewer: Viewer, store: Stores, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = {}
    for name, path in addresses(store).items():
        page.goto(viewer.root + path)
        settled(page)
        found[name] = violations(page)
    assert {name: each for name, each in found.items() if each} == {}
