"""Configuration: `flakestorm.yaml` as data."""

from flakestorm.config.access import contract_of, model_of, require_invariants, scenarios_of, tools_of
from flakestorm.config.load import load, loads, read, reads
from flakestorm.config.model import Config

__all__ = [
    "Config",
    "contract_of",
    "load",
    "loads",
    "model_of",
    "read",
    "reads",
    "require_invariants",
    "scenarios_of",
    "tools_of",
]
