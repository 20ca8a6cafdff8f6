"""Agents made with real frameworks. They live in a virtual environment of their own: `make frameworks`."""

from __future__ import annotations

from importlib.util import find_spec

PRESENT = find_spec("langgraph") is not None

collect_ignore_glob = ["programs/*", "corpus/*"] if PRESENT else ["*.py"]


def pytest_report_header() -> str | None:
    return None if PRESENT else "tests/agents: run by `make frameworks`, in a virtual environment of their own"
