"""One invariant as data."""

from __future__ import annotations

from config_support import refused
from flakestorm.config.base import keys_of
from flakestorm.config.invariants import NEEDS, Invariant
from flakestorm.config.vocabulary import INVARIANT_TYPES


def test_defaults() -> None:
    rule = Invariant(type="completes")
    assert (rule.severity, rule.when, rule.negate, rule.probes, rule.min_pass_rate) == (
        "medium",
        "always",
        False,
        [],
        None,
    )


def test_schema_is_the_key_for_a_json_schema() -> None:
    assert Invariant.of({"type": "json_schema", "schema": {"type": "object"}}).schema_ == {"type": "object"}


def test_a_limit_may_be_a_fraction_and_keeps_whole_numbers_whole() -> None:
    assert Invariant(type="max_cost", limit=0.05).limit == 0.05
    assert isinstance(Invariant(type="max_calls", limit=3).limit, int)
    assert "limit" in refused({"type": "max_calls", "limit": -1}, Invariant)


def test_needed_keys_are_keys_of_known_types() -> None:
    keys = set(keys_of(Invariant))
    assert set(NEEDS) <= INVARIANT_TYPES.words
    assert {key for needed in NEEDS.values() for key in needed} <= keys
