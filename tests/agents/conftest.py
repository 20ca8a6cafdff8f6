"""Agents made with real frameworks. They live in a virtual environment of their own: `make frameworks`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PRESENT = find_spec("langgraph") is not None

collect_ignore_glob = ["programs/*"] if PRESENT else ["*.py"]


def pytest_report_header() -> str | None:
    return None if PRESENT else "tests/agents: run by `make frameworks`, in a virtual environment of their own"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What frameworks warn of is their affair."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
