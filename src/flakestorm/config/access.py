"""Questions that commands ask of a configuration."""

from __future__ import annotations

from flakestorm.config.faults import Scenario
from flakestorm.config.model import Config, Contract
from flakestorm.errors import ConfigError

__all__ = ["contract_of", "require_invariants", "scenarios_of"]


def require_invariants(config: Config) -> None:
    """Make sure there is something to judge by.

    Raises:
        ConfigError: there is no top-level invariant.
    """
    if not config.invariants:
        raise ConfigError(
            "needs at least one invariant, because a run without one proves nothing; for example:\n"
            "  invariants:\n    - type: output_not_empty",
            key="invariants",
        )


def contract_of(config: Config) -> Contract:
    """The contract.

    Raises:
        ConfigError: there is none, or there is no invariant to judge by.
    """
    if config.contract is None:
        raise ConfigError(
            "this command judges a contract, and the config has none; for example:\n"
            "  contract:\n    name: booking\n    invariants:\n      - type: completes\n"
            "    chaos_matrix:\n      - name: no chaos\n      - name: tools down\n"
            "        tool_faults:\n          - mode: error",
            key="contract",
        )
    if not (config.contract.invariants or config.invariants):
        raise ConfigError(
            "the contract has no invariants, and there are none at top level; add at least one, for example:\n"
            "  - type: completes",
            key="contract.invariants",
        )
    return config.contract


def scenarios_of(config: Config) -> list[Scenario]:
    """The scenarios: the contract's chaos matrix, else the one at top level.

    Raises:
        ConfigError: neither has a scenario, or scenarios are to be generated, which this version cannot do.
    """
    if config.contract is not None and config.contract.generate is not None:
        raise ConfigError(
            f"generating scenarios ({config.contract.generate!r}) is not available in this version; "
            "write them out under chaos_matrix",
            key="contract.generate",
        )
    own = config.contract.chaos_matrix if config.contract is not None else []
    scenarios = own or config.chaos_matrix
    if not scenarios:
        raise ConfigError(
            "the contract's chaos_matrix is empty; add at least one scenario, for example:\n"
            "  - name: tools down\n    tool_faults:\n      - mode: error",
            key="contract.chaos_matrix",
        )
    return list(scenarios)
