"""Fork and shrink from the viewer's pages in a real browser: by mouse and keyboard, with live progress, cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browser_support import AXE, Watched, needs_browser, violations
from project_support import Project, project
from upstream import Gate
from viewer_support import Viewer, viewing

pytestmark = needs_browser


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with project(tmp_path_factory.mktemp("project")) as found:
        yield found


@pytest.fixture(scope="module")
def viewer(made: Project) -> Iterator[Viewer]:
    with viewing(made.folder) as serving:
        yield serving


@pytest.fixture
def page(browser: Any, viewer: Viewer) -> Iterator[Any]:
    """A page that was let in; afterwards it must have been silent, and nothing on it may have run."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    watched = Watched(context.new_page())
    watched.page.goto(viewer.address)
    watched.page.locator(".report-line").first.wait_for()
    yield watched.page
    assert watched.page.evaluate("window.pwned") is None
    context.close()
    assert watched.complaints == []
    assert [url for url in watched.requests if not url.startswith((f"{viewer.root}/", "data:"))] == []


def looks_right(page: Any) -> None:
    """In both themes no complaint of the accessibility checker, and on a phone no sideways scrolling."""
    for scheme in ("light", "dark") if AXE.is_file() else ():
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
    page.set_viewport_size({"width": 320, "height": 800})
    for where in ("document.documentElement", "document.getElementById('detail')"):
        assert page.evaluate(f"{where}.scrollWidth - {where}.clientWidth") == 0
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_fork_by_keyboard_from_exchange_to_difference(page: Any, viewer: Viewer, made: Project) -> None:
    page.goto(f"{viewer.root}/run?report={made.report}&run=r-0001&exchange=0")
    page.get_by_role("button", name="Fork here").press("Enter")
    page.locator("dialog .command").wait_for()
    shown = page.locator("dialog .plan").inner_text()
    assert "'--at=tool/flights#1' --fault=error:503" in shown
    assert "After it, the model and the tools are really called" in shown
    assert page.locator("#modes option[value=slow]").count() == 1
    page.get_by_label("Fault", exact=True).fill("nonsense")
    page.locator("dialog .bad", has_text="nonsense").wait_for()
    assert page.locator("dialog .primary").is_disabled()
    page.get_by_label("What is changed").select_option("set")
    page.get_by_label("The whole body of the reply").fill('["only one"]')
    page.locator("dialog .command", has_text="--set=").wait_for()
    looks_right(page)
    page.locator("dialog .primary:enabled").press("Enter")
    page.locator("[data-testid=state]", has_text="done").wait_for()
    assert "1 flights, sunny." in page.locator("main").inner_text()
    assert "<img src=x onerror=" in page.get_by_role("group", name="What it said").inner_text()
    looks_right(page)
    page.get_by_role("link", name="Side by side with the run it was made from").click()
    page.locator(".pair-line").first.wait_for()
    assert [line.split("\n")[0] for line in page.locator(".pair-line").all_inner_texts()] == ["reply differs", "same"]


def test_a_failure_is_shrunk_from_its_cell(page: Any, viewer: Viewer, made: Project) -> None:
    page.goto(f"{viewer.root}/report?id={made.report}")
    page.locator("[data-testid=cell].fail").click()
    page.get_by_role("link", name="Shrink this failure").click()
    page.locator("dialog .plan", has_text="up to 200 times").wait_for()
    page.get_by_label("At most so many runs").fill("40")
    page.locator("dialog .plan", has_text="up to 40 times").wait_for()
    page.locator("dialog .primary").click()
    page.locator("[data-testid=state]", has_text="done").wait_for()
    assert "of at most 40 runs" in page.locator(".job").inner_text()
    assert "2 before, 1 now" in page.locator("main").inner_text()
    page.get_by_role("link", name="Open the smallest run").click()
    page.locator(".exchange-line", has_text="⚡ error").wait_for()


def test_it_can_be_watched_and_cancelled(page: Any, viewer: Viewer, made: Project) -> None:
    made.gate = Gate()
    try:
        page.goto(f"{viewer.root}/run?report={made.report}&run=r-0001&exchange=0&fork=1")
        page.locator("dialog .primary:enabled").click()
        page.locator(".job", has_text="1 exchange ·").wait_for()  # which is the first; the second waits at the gate
        assert page.locator("[data-testid=state]").inner_text() == "… under way"
        looks_right(page)
        page.get_by_role("button", name="Cancel").click()
        page.locator("[data-testid=state]", has_text="cancelled").wait_for()
    finally:
        made.gate.open()
        made.gate = None
    page.goto(f"{viewer.root}/work")
    assert "cancelled" in page.locator("main li").first.inner_text()
    looks_right(page)


def test_a_browser_that_was_not_given_the_token_may_look_only(browser: Any, viewer: Viewer, made: Project) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(viewer.address)
    page.locator(".report-line").first.wait_for()
    page.evaluate("localStorage.clear()")  # the cookie is there: it opens what is read, and nothing else
    page.goto(f"{viewer.root}/run?report={made.report}&run=r-0001&exchange=0&fork=1")
    page.locator("dialog .primary:enabled").click()
    page.locator("dialog .bad", has_text="Open the address that").wait_for()
    context.close()


def test_a_saved_page_is_shut_off_from_the_viewer(browser: Any, viewer: Viewer, made: Project) -> None:
    context = browser.new_context()
    watched = Watched(context.new_page())
    watched.page.goto(viewer.address)
    watched.page.locator(".report-line").first.wait_for()
    watched.page.goto(f"{viewer.root}/report.html?id={made.report}")
    assert watched.page.evaluate("self.origin") == "null"
    with pytest.raises(Exception, match="sandboxed"):
        watched.page.evaluate("localStorage.getItem('token')")
    watched.page.locator("[data-testid=cell].fail").click()
    watched.page.locator("dialog[open] details.exchange summary").first.click()
    watched.page.locator("dialog .copy button").first.click()
    watched.page.keyboard.press("Escape")
    watched.page.locator("dialog:not([open])").wait_for(state="attached")
    context.close()
    assert watched.complaints == []
