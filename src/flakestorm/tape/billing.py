"""What a run's model calls were billed for: tokens, and US dollars by list prices.

Tokens are those that the providers counted, of the replies that the world really gave: what a fault or a tape
answered in its place was never billed, and what a fault changed on the way was billed as it was. What is not known is
None, never nothing: a provider that did not say its usage, a model without a price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flakestorm.tape.document import said
from flakestorm.tape.model import Exchange
from flakestorm.wire.base import Usage
from flakestorm.wire.prices import Price, cost, price_of

__all__ = ["Bill", "bill", "billed"]


@dataclass(frozen=True, slots=True)
class Bill:
    """What the model calls of one run came to.

    Args:
        tokens: input and output together; cost: in US dollars. None where that is not known for all of them.
    """

    tokens: int | None
    cost: float | None


def billed(exchange: Exchange) -> Usage | None:
    """The tokens a model call was billed for: none where the world was not asked or refused; None where it gave an
    answer and did not say, or may have worked on one that nobody waited for."""
    world = exchange.reply if exchange.world is None else exchange.world
    answered_by_a_fault = exchange.sent == 0 and exchange.faults
    if answered_by_a_fault or world.status >= 400:
        return Usage(0, 0)
    if world.status == 0:
        from flakestorm.tape.serving import failure  # few calls get no reply

        return Usage(0, 0) if failure(world).how == "refused" else None
    meaning = said(exchange, world)
    return None if meaning is None else meaning.usage


def bill(exchanges: Sequence[Exchange], prices: Mapping[str, Price] | None = None) -> Bill:
    """The bill of a live run; exchanges that never went out (`sent` is 0) cost nothing.

    Args:
        exchanges: of the run.
        prices: by the model's name, beside and before the list prices.
    """
    tokens: int | None = 0
    dollars: float | None = 0.0
    for exchange in exchanges:
        if exchange.kind != "llm" or not exchange.sent:
            continue
        usage = billed(exchange)
        if usage is None or (usage.input is None and usage.output is None):
            return Bill(None, None)
        used = (usage.input or 0) + (usage.output or 0)  # each time that it went out
        tokens = None if tokens is None else tokens + used * exchange.sent
        price = price_of(exchange.name, prices) if used else Price(0, 0)
        dollars = None if dollars is None or price is None else dollars + cost(usage, price) * exchange.sent
    return Bill(tokens, dollars)
