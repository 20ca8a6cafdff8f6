"""Questions that commands ask of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from flakestorm.config.faults import Chaos, ContextAttack, LlmFault, Scenario, ToolFault
from flakestorm.config.invariants import Invariant
from flakestorm.config.model import Config, Contract, Model
from flakestorm.config.problems import Path
from flakestorm.errors import ConfigError

__all__ = [
    "all_invariants",
    "contract_of",
    "faults_in",
    "invariants_in",
    "model_of",
    "require_invariants",
    "scenarios_of",
    "tools_of",
]


def all_invariants(config: Config) -> list[Invariant]:
    """The contract's invariants and the top-level ones; of two that are the same, one."""
    own = config.contract.invariants if config.contract else []
    ids = {invariant.id for invariant in own}
    top = [replace(i, id=f"{i.id} (top level)") if i.id in ids else i for i in config.invariants if i not in own]
    return [*own, *top]


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


def tools_of(config: Config, *more: Chaos) -> list[tuple[str, str]]:
    """Names for plain HTTP tools, with the URL globs they are known by: `boundary.tools`, then the faults that name a
    tool and say where it is.

    Those of the whole config, whatever is run of it, so that a site has one name everywhere.

    Args:
        config: the configuration.
        more: chaos from elsewhere that is played too, e.g. a profile.
    """
    named = list(config.boundary.tools.items())
    matrix = config.contract.chaos_matrix if config.contract else []
    everything: Iterable[Chaos] = (*more, *matrix, *config.chaos_matrix, *([config.chaos] if config.chaos else []))
    named += [
        (fault.tool, fault.match_url)
        for chaos in everything
        for fault in chaos.tool_faults
        if fault.match_url is not None and not set(fault.tool) & set("*?[")
    ]
    return list(dict.fromkeys(named))


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


def model_of(config: Config, *, wanted_by: Sequence[str]) -> Model:
    """The model that these invariants ask.

    Raises:
        ConfigError: none is configured. One that nobody wrote down is not asked, although there are defaults.
    """
    if config.model is None or config.model.provider == "none":
        raise ConfigError(
            f"{', '.join(wanted_by)} asks a model to judge, and none is configured; for example:\n"
            '  model:\n    provider: openai\n    name: gpt-4o-mini\n    api_key: "${OPENAI_API_KEY}"',
            key="model",
        )
    return config.model


def scenarios_of(config: Config) -> list[Scenario]:
    """The scenarios: the contract's chaos matrix, else the one at top level.

    Raises:
        ConfigError: neither has a scenario, and none are to be generated.
    """
    own = config.contract.chaos_matrix if config.contract is not None else []
    scenarios = own or config.chaos_matrix
    if not scenarios and (config.contract is None or config.contract.generate is None):
        raise ConfigError(
            "the contract's chaos_matrix is empty; add at least one scenario, for example:\n"
            "  - name: tools down\n    tool_faults:\n      - mode: error",
            key="contract.chaos_matrix",
        )
    return list(scenarios)


def invariants_in(config: Config) -> Iterator[tuple[Path, Invariant]]:
    """Every invariant, and where it stands in the file."""
    for index, invariant in enumerate(config.invariants):
        yield ("invariants", index), invariant
    if config.contract is not None:
        for index, invariant in enumerate(config.contract.invariants):
            yield ("contract", "invariants", index), invariant


def faults_in(config: Config) -> Iterator[tuple[Path, ToolFault | LlmFault | ContextAttack]]:
    """Every fault that is planned, and where it stands in the file; attacks that are not `enabled` are left out."""
    matrices: list[tuple[Path, list[Scenario]]] = [(("chaos_matrix",), config.chaos_matrix)]
    if config.contract is not None:
        matrices.append((("contract", "chaos_matrix"), config.contract.chaos_matrix))
    blocks: list[tuple[Path, Chaos]] = [
        ((*path, index), scenario) for path, matrix in matrices for index, scenario in enumerate(matrix)
    ]
    if config.chaos is not None:
        blocks.append((("chaos",), config.chaos))
    for path, chaos in blocks:
        for name in ("tool_faults", "llm_faults", "context_attacks"):
            for index, fault in enumerate(getattr(chaos, name)):
                if getattr(fault, "enabled", True):
                    yield (*path, name, index), fault
