from flakestorm.core.site import Site
from flakestorm.engine.atoms import Atom, Outcome
from flakestorm.engine.lineage import Lineage

A, B, C = (Site("tool", name, 1) for name in "abc")


def passing(down: list[Site], *sites: Site) -> Outcome:
    firings = tuple((Atom(site, "error", lasting=True), site) for site in sites if site in down)
    return Outcome(frozenset(atom for atom, _ in firings), firings, sites)


def test_what_kept_the_agent_alive_is_broken_next() -> None:
    lineage = Lineage([A])
    lineage.passes([A], passing([A], A, B))
    assert lineage.next() == (A, B)
    lineage.passes([A, B], passing([A, B], A, B, C))
    assert lineage.next() == (B, C)
    lineage.fails([B, C])
    assert lineage.next() is None


def test_an_agent_that_needs_nothing_more_is_left_alone() -> None:
    lineage = Lineage([A, B])
    lineage.passes([A], passing([A], A))
    lineage.fails([B])
    assert lineage.next() is None
