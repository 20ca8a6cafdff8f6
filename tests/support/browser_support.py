"""A real Chromium, and pages that keep what they complained about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["CHROMIUM", "Watched", "chromium"]

CHROMIUM = os.environ.get("FLAKESTORM_CHROMIUM") or shutil.which("chromium")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"]


@contextmanager
def chromium(sync_api: Any) -> Iterator[Any]:
    """A browser, closed at the end."""
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
