"""Patterns of a config that backtrack, on what an agent says to make them."""

from __future__ import annotations

from typing import Any

import pytest

from contracts_support import inv, said
from flakestorm.contracts import searching
from flakestorm.contracts.base import invariants
from flakestorm.contracts.matrix import judge

EVIL = "a" * 50 + "!"


@pytest.mark.parametrize(
    ("type_", "settings"),
    [("regex", {"pattern": "(a+)+$"}), ("excludes_pattern", {"patterns": ["(a|aa)+$"]})],
)
def test_a_pattern_that_backtracks_is_inconclusive_and_never_a_pass(
    type_: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "LIMIT_S", 0.1)
    verdict = invariants.get(type_)(inv(type_, **settings), said(EVIL))
    assert verdict.outcome == "inconclusive"
    assert "the pattern backtracks" in verdict.reason


def test_one_that_matches_all_the_same_is_a_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "LIMIT_S", 0.1)
    verdict = invariants.get("excludes_pattern")(inv("excludes_pattern", patterns=["(a+)+$", "!"]), said(EVIL))
    assert verdict.outcome == "fail"


def test_a_schema_s_pattern_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "LIMIT_S", 0.1)
    rule = inv("json_schema", schema={"type": "string", "pattern": "^(a+)+$"})
    verdict = judge(rule, said(f'"{EVIL}"'))
    assert verdict.outcome == "inconclusive"
    assert "the pattern backtracks" in verdict.reason
