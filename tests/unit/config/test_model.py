"""The whole configuration as data."""

from __future__ import annotations

import pytest

from config_support import refused
from flakestorm.config import model
from flakestorm.config.model import Config, Scoring

MINIMAL = {"agent": {"endpoint": "x"}, "golden_prompts": ["a"]}


def test_defaults_are_those_of_the_format() -> None:
    config = Config.of(MINIMAL)
    assert config.version == "1.0"
    assert config.mutations.count == 10
    assert config.scoring == Scoring(mutation=0.20, chaos=0.35, contract=0.35, replay=0.10)
    assert (config.output.format, config.output.path) == ("html", "./reports")
    assert (config.advanced.concurrency, config.advanced.retries, config.advanced.seed) == (10, 2, None)
    assert (config.boundary.match, config.boundary.allow_live) == ("renamed", False)
    assert (config.chaos, config.contract, config.chaos_matrix) == (None, None, [])
    assert config.folder == "."


@pytest.mark.parametrize(("given", "meant"), [(1.0, "1.0"), (2.0, "2.0"), (1, "1.0"), (2, "2.0"), ("2.0", "2.0")])
def test_a_version_may_be_a_number(given: object, meant: str) -> None:
    assert Config.of({**MINIMAL, "version": given}).version == meant


@pytest.mark.parametrize("given", ["3.0", 3, 1.5, True, "1"])
def test_other_versions_are_refused(given: object) -> None:
    assert "version" in refused({**MINIMAL, "version": given}, Config)


def test_golden_prompts_are_needed() -> None:
    assert "golden_prompts" in refused({**MINIMAL, "golden_prompts": []}, Config)


def test_weights_must_sum_to_one() -> None:
    assert "sum to 1.0, but sum to 0.9" in refused({"mutation": 0.1}, Scoring)


def test_every_block_can_be_imported_from_here() -> None:
    assert [name for name in model.__all__ if not hasattr(model, name)] == []
    blocks = {"Agent", "Model", "Mutations", "Invariant", "Chaos", "Contract", "Scenario", "ToolFault", "LlmFault"}
    assert blocks <= set(model.__all__)


@pytest.mark.parametrize("seed", [-(2**63), 2**63 - 1])
def test_a_seed_has_64_bits(seed: int) -> None:
    assert Config.of({**MINIMAL, "advanced": {"seed": seed}}).advanced.seed == seed
    with pytest.raises(ValueError, match="seed"):
        Config.of({**MINIMAL, "advanced": {"seed": 10 * seed}})
