from __future__ import annotations

from flakestorm.config.model import ToolFault
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.site import Site
from flakestorm.faults.hits import Hit
from flakestorm.faults.planned import Planned

SITE, MODEL = Site("tool", "search", 1), Site("llm", "gpt-4o", 2)


def hit(ledger: Ledger) -> Hit:
    return Hit(0, Planned(3, "tool", ToolFault(mode="error")), SITE, ledger)


def test_it_fires_once() -> None:
    ledger = Ledger()
    one = hit(ledger)
    one.fire("503")
    one.fire("again")
    assert ledger.fired == [Firing(SITE, "error", "tool", "503", 3)]
    assert one.fired


def test_what_was_masked_may_fire_later_and_is_masked_no_more() -> None:
    ledger = Ledger()
    one, other = hit(ledger), hit(ledger)
    for masked in (one, one, other):
        masked.mask("rate_limit")
    assert ledger.masked == [Firing(SITE, "error", "tool", "masked by rate_limit", 3)] * 2
    one.fire("503", via=MODEL)
    assert ledger.fired == [Firing(SITE, "error", "tool", "503", 3, MODEL)]
    assert len(ledger.masked) == 1
