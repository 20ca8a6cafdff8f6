"""What a trial proves."""

from types import SimpleNamespace
from typing import Any

import pytest

from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.pytest_plugin.verdict import add_section, properties, unfired
from unit_runs import made

FIRED = (Firing(Site("tool", "search", 1), "error", "tool"),)


def test_a_fault_that_fired_in_any_run_is_enough() -> None:
    assert unfired([made(planned=("tool/x=error",)), made(planned=("tool/x=error",), fired=FIRED)]) == ""
    assert unfired([made()]) == ""
    assert unfired([]) == ""


def test_where_none_did_it_says_which_were_planned_and_what_was_seen() -> None:
    said = unfired([made(planned=("tool/x=error",), seen=("a\x1b[0m", "b"))])
    assert said == "no planned fault fired (tool/x=error); tools seen: a\\x1b[0m, b"
    assert unfired([made(planned=("tool/x=error",))]).endswith("no tool was seen")


def test_properties_name_each_site_once() -> None:
    found = dict(properties([made(fired=FIRED), made(fired=FIRED)]))
    assert (found["flakestorm.runs"], found["flakestorm.fired"]) == (2, "tool/search#1=error")
    assert properties([]) == []


def test_sections_stand_with_the_failure_or_else_beside_it() -> None:
    told: list[tuple[str, str]] = []
    report: Any = SimpleNamespace(longrepr=SimpleNamespace(addsection=lambda *a: told.append(a)), sections=[])
    add_section(report, "a", "b")
    assert (told, report.sections) == ([("a", "b")], [])
    report.longrepr = "text"
    add_section(report, "a", "b")
    assert report.sections == [("a", "b")]


@pytest.mark.parametrize("count", [1, 3])
def test_properties_count_runs(count) -> None:
    assert dict(properties([made()] * count))["flakestorm.runs"] == count
