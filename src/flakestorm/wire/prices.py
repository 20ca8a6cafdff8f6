"""What models cost: list prices per million tokens, by the model's name.

The table is data (`prices.yaml`) and grows old; whoever asks may bring prices that go before it. A model without a
price is not free, it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from flakestorm.core.beside import beside
from flakestorm.wire.base import Usage

__all__ = ["Price", "cost", "price_of", "prices"]

# A date, a version or `latest` behind the name, in the ways providers write them.
_VERSION = re.compile(r"(?:[-@:](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|\d{3}|latest|v\d+(?::\d+)?|preview(?:-[\d-]+)?))+$")
_PLACE = re.compile(r"^(?:.*/)?(?:(?:us|eu|apac|global)\.)?(?:anthropic\.)?")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    Args:
        input, output: of what the model reads, and of what it writes.
    """

    input: float
    output: float


@cache
def prices() -> Mapping[str, Price]:
    """The built-in table, by the model's name without its version."""
    rows: dict[str, dict[str, Any]] = yaml.safe_load(beside("wire", "prices.yaml").read_text("utf-8"))
    return {name: Price(float(row["input"]), float(row["output"])) for name, row in rows.items()}


def price_of(model: str, own: Mapping[str, Price] | None = None) -> Price | None:
    """What a model costs; None if nobody knows.

    Args:
        model: its name as asked for, with or without a version and the place it is served from
            (`gpt-4o-2024-08-06`, `us.anthropic.claude-sonnet-4-20250514-v1:0`, `openai/gpt-4o`).
        own: prices that go before the table, by name, likewise.
    """
    bare = _PLACE.sub("", model.lower())
    for table in ({name.lower(): price for name, price in (own or {}).items()}, prices()):
        for name in (model.lower(), bare, _VERSION.sub("", bare)):
            if name in table:
                return table[name]
    return None


def cost(usage: Usage, price: Price) -> float:
    """US dollars for so many tokens; what is not stated counts as none."""
    return ((usage.input or 0) * price.input + (usage.output or 0) * price.output) / 1_000_000
