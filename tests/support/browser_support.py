"""A real Chromium, and pages that keep what they complained about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e_support import wait_until
from foreign_support import FOREIGN

__all__ = ["AXE", "CHROMIUM", "NO_AXE", "Watched", "chromium", "needs_browser", "until", "violations"]

AXE = FOREIGN / "node_modules" / "axe-core" / "axe.min.js"
NO_AXE = "axe-core is not installed in tests/foreign: `make foreign`"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

CHROMIUM = os.environ.get("FLAKESTORM_CHROMIUM") or shutil.which("chromium")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"]

needs_browser = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: apt-get install chromium, or `make browser`"),
]
"""The marks of a module whose tests take the fixture `browser`."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, closed at the end."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


class Watched:
    """A page that keeps what it complained about, asked for and popped up."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda m: self.complaints.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))


def until(page: Any, condition: str) -> None:
    """Wait for it; playwright's own way of waiting makes functions of strings, which the pages' policy forbids."""
    wait_until(lambda: bool(page.evaluate(condition)))


def violations(page: Any) -> list[tuple[str, str]]:
    """What an accessibility checker (axe-core) finds on the page as it is: the rule, and the first place."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("rules => axe.run({runOnly: rules}).then(found => found.violations)", RULES)
    return [(each["id"], each["nodes"][0]["html"][:160]) for each in found]
