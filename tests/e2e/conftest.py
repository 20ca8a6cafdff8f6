"""What several of these tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium; see `browser_support.needs_browser`."""
    from browser_support import chromium

    with chromium() as browser:
        yield browser
