from __future__ import annotations

from flakestorm.config.model import ToolFault
from flakestorm.core.ledger import Canary, Firing, Ledger
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


def test_what_it_plants_is_planted_when_it_fires_and_once() -> None:
    ledger = Ledger()
    one = hit(ledger)
    one.mask("rate_limit")
    assert ledger.canaries == []
    one.fire("hidden", canary=Canary("FS1"))
    one.fire("hidden", canary=Canary("FS1"))
    assert ledger.canaries == [Canary("FS1")]


def test_a_reason_for_doing_nothing_is_kept_once_and_not_if_it_fires() -> None:
    ledger = Ledger()
    one = hit(ledger)
    one.idle("nothing there")
    one.idle("still nothing")
    assert ledger.idle == [Firing(SITE, "error", "tool", "nothing there", 3)]
    ledger = Ledger()
    other = hit(ledger)
    other.fire("503")
    other.idle("nothing there")
    assert ledger.idle == []


def test_a_fault_that_lasts_is_written_down_at_every_call() -> None:
    ledger = Ledger()
    one = hit(ledger)
    one.fire("lost")
    later = Site("mcp", "tools/list", 1)
    one.also(later, "still lost")
    assert [(firing.site, firing.detail) for firing in ledger.fired] == [(one.site, "lost"), (later, "still lost")]
