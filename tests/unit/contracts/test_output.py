import re
from typing import Any

import pytest

from contracts_support import CRASH, inv, said
from flakestorm.contracts.base import invariants
from flakestorm.contracts.matrix import judge
from flakestorm.contracts.output import SEARCH_CHARS, compiled
from flakestorm.core.verdict import Verdict

BOOKED = "Your flight is booked: HAT136, seat 12A."


def verdict(type_: str, output: str, **settings: Any) -> Verdict:
    return invariants.get(type_)(inv(type_, **settings), said(output))


@pytest.mark.parametrize(
    ("type_", "settings", "output", "outcome"),
    [
        ("contains", {"value": "BOOKED"}, BOOKED, "pass"),
        ("contains", {"value": "straße"}, "Die STRASSE ist gesperrt", "pass"),
        ("contains", {"value": "cancelled"}, BOOKED, "fail"),
        ("contains", {"value": "booked"}, "", "fail"),
        ("contains_any", {"values": ["sorry", "Booked"]}, BOOKED, "pass"),
        ("contains_any", {"values": ["sorry", "unavailable"]}, BOOKED, "fail"),
        ("regex", {"pattern": r"HAT\d{3}"}, BOOKED, "pass"),
        ("regex", {"pattern": r"hat\d{3}"}, BOOKED, "fail"),
        ("regex", {"pattern": r"(?i)hat\d{3}"}, BOOKED, "pass"),
        ("regex", {"pattern": r"^\{.*\}$"}, '{"a":\n1}', "pass"),
        ("excludes_pattern", {"patterns": [r"seat \d+[A-F]"]}, BOOKED, "fail"),
        ("excludes_pattern", {"patterns": [r"SEAT \d+"]}, BOOKED, "fail"),
        ("excludes_pattern", {"patterns": [r"(?-i:SEAT) \d+"]}, BOOKED, "pass"),
        ("excludes_pattern", {"patterns": [r"\d{4}", r"system prompt"]}, BOOKED, "pass"),
        # A regular expression and not a substring: these letters occur, the pattern does not match them.
        ("excludes_pattern", {"patterns": [r"a.c"]}, "the pattern a.c matches itself", "fail"),
        ("excludes_pattern", {"patterns": [r"^sk-\w+$"]}, "a key looks like ^sk-\\w+$", "pass"),
        ("valid_json", {}, ' {"ok": [1, 2.5, null]} ', "pass"),
        ("valid_json", {}, '"text"', "pass"),
        ("valid_json", {}, "1" * 10_000, "pass"),
        ("valid_json", {}, '{"ok": }', "fail"),
        ("valid_json", {}, '{"rate": NaN}', "fail"),
        ("valid_json", {}, '```json\n{"ok": 1}\n```', "fail"),
        ("valid_json", {}, '{"ok": 1} trailing', "fail"),
        ("valid_json", {}, "", "fail"),
        ("output_not_empty", {}, "ok", "pass"),
        ("output_not_empty", {}, " \n\t", "fail"),
        ("output_not_empty", {}, "", "fail"),
        ("completes", {}, "", "pass"),
    ],
)
def test_table(type_: str, settings: dict[str, Any], output: str, outcome: str) -> None:
    assert verdict(type_, output, **settings).outcome == outcome


@pytest.mark.parametrize(
    ("type_", "settings", "reason"),
    [
        ("contains", {"value": "cancelled"}, f'"cancelled" not found in "{BOOKED}"'),
        ("contains_any", {"values": ["a!", "b!"]}, f'none of "a!", "b!" found in "{BOOKED}"'),
        ("regex", {"pattern": "(?i)unavailable"}, f'no match for (?i)unavailable in "{BOOKED}"'),
        ("excludes_pattern", {"patterns": [r"seat \d+"]}, rf'seat \d+ matches "{BOOKED}"'),
        ("valid_json", {}, f'not JSON: Expecting value at line 1 column 1: "{BOOKED}"'),
    ],
)
def test_a_fail_quotes_its_evidence(type_: str, settings: dict[str, Any], reason: str) -> None:
    assert verdict(type_, BOOKED, **settings) == Verdict("fail", reason)


def test_a_long_output_is_quoted_in_part() -> None:
    reason = verdict("regex", "Your flight is booked. " * 1000, pattern="(?i)unavailable").reason
    assert reason.startswith('no match for (?i)unavailable in "Your flight is booked.')
    assert len(reason) < 200


def test_a_crash_does_not_complete() -> None:
    assert invariants.get("completes")(inv("completes"), said("", error=CRASH)) == Verdict("fail", str(CRASH))


@pytest.mark.parametrize(("latency_ms", "outcome"), [(1999.6, "pass"), (2000, "pass"), (2000.1, "fail")])
def test_latency_is_held_against_its_limit(latency_ms: float, outcome: str) -> None:
    result = invariants.get("latency")(inv("latency", max_ms=2000), said("ok", latency_ms=latency_ms))
    assert result.outcome == outcome
    assert "2,000 ms" in result.reason


def test_a_fast_crash_is_not_low_latency() -> None:
    assert judge(inv("latency", max_ms=2000), said("", error=CRASH, latency_ms=1)) == Verdict("fail", str(CRASH))


@pytest.mark.parametrize(
    ("type_", "settings"), [("regex", {"pattern": "end"}), ("excludes_pattern", {"patterns": ["end"]})]
)
def test_not_finding_something_in_a_part_of_the_output_proves_nothing(type_: str, settings: dict[str, Any]) -> None:
    result = verdict(type_, "x" * SEARCH_CHARS + "end", **settings)
    assert result.outcome == "inconclusive"
    assert "only the first 1,000,000 of 1,000,003 characters" in result.reason
    assert verdict(type_, "x" * (SEARCH_CHARS - 3) + "end", **settings).conclusive
    assert verdict(type_, "end" + "x" * SEARCH_CHARS, **settings).conclusive


def test_patterns_are_compiled_once() -> None:
    assert compiled("a+", re.DOTALL) is compiled("a+", re.DOTALL)
